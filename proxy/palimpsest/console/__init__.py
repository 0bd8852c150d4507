"""What commands are made of: arguments, output, and the archive of a data folder."""
