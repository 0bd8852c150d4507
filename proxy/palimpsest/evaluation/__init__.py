"""
Benchmarks of memory on conversations whose answers are known: `palimpsest bench NAME DATA...`.

The map; whoever adds a benchmark adds a file `bench_NAME.py` and a line in `command.py`:

    command      what can be typed, and the flags that all share
    bench_*      one question each: which conversations, what is asked, what counts
    baselines/   other memories, one a file, each by its paper
    palimpsest   ours: a real store on disk, asked as the proxy asks
    systems      what both have in common
    restoring    what comes back after a compaction: compaction, facts
    diagnosis    lost in writing, or in reading: writing
    growth       a store of many memories, made once for many runs
    costs compression                what a search costs, and a message; vectors in fewer bits
    model        a language model, for what needs one; nothing asks one unless it is named
    scripted/    a provider that follows a script, for tests as well
    datasets score statistics report vectors
"""
