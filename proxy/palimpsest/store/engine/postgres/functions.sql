-- What statements of store/ call and PostgreSQL does not have: see store/engine/dialect.py.
-- Each is declared as volatile as what it calls: only then is it put into the statement instead of called.

CREATE FUNCTION numbers(list text) RETURNS TABLE(key bigint, value bigint) IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT place - 1, element::bigint FROM json_array_elements_text(list::json) WITH ORDINALITY AS one(element, place)
    OFFSET 0
$$;
CREATE FUNCTION texts(list text) RETURNS TABLE(key bigint, value text) IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT place - 1, element FROM json_array_elements_text(list::json) WITH ORDINALITY AS one(element, place)
    OFFSET 0
$$;
CREATE FUNCTION arrays(list text) RETURNS TABLE(key bigint, value json) IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT place - 1, element FROM json_array_elements(list::json) WITH ORDINALITY AS one(element, place)
    OFFSET 0
$$;
CREATE FUNCTION item(list json, place integer) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT list ->> place
$$;
CREATE FUNCTION counts(object text) RETURNS TABLE(key text, value bigint) IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT name, number::bigint FROM json_each_text(object::json) AS one(name, number)
$$;
CREATE FUNCTION field(object text, path text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT object::json #>> string_to_array(path, '.')
$$;
CREATE FUNCTION with_field(object text, name text, value bigint) RETURNS text STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT jsonb_set(object::jsonb, ARRAY[name], to_jsonb(value))::text
$$;
CREATE FUNCTION joined(first bytea, second bytea) RETURNS bytea IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT first || second
$$;
CREATE FUNCTION bytes_of(number bigint) RETURNS bytea IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT convert_to(number::text, 'UTF8')
$$;
CREATE FUNCTION zeros_for(content text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT repeat('0', octet_length(content))
$$;
CREATE FUNCTION utc_day(seconds double precision) RETURNS text STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT to_char(to_timestamp(seconds) AT TIME ZONE 'UTC', 'YYYY-MM-DD')
$$;
CREATE FUNCTION glob(pattern text, content text) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    -- everything but * ? [ ] stands for itself
    SELECT content ~ ('(?s)^' || replace(replace(
        regexp_replace(pattern, '([\\.^$+(){}|])', '\\\1', 'g'), '*', '.*'), '?', '.') || '$')
$$;
CREATE FUNCTION instr(content text, part text) RETURNS integer IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT strpos(content, part)
$$;
CREATE FUNCTION substr(content text, start bigint, length bigint) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT substr(content, start::integer, length::integer)
$$;
CREATE FUNCTION stored_bytes() RETURNS bigint STABLE LANGUAGE sql AS $$
    SELECT pg_database_size(current_database())
$$;
CREATE FUNCTION free_pages() RETURNS bigint IMMUTABLE LANGUAGE sql AS $$
    SELECT 0::bigint    -- the server gives them back by itself
$$;
CREATE FUNCTION page_bytes() RETURNS bigint IMMUTABLE LANGUAGE sql AS $$
    SELECT 8192::bigint
$$;
CREATE FUNCTION has_table(name text) RETURNS boolean STABLE LANGUAGE sql AS $$
    SELECT to_regclass(name) IS NOT NULL
$$;
CREATE VIEW last_id AS                      -- the last id ever given in a table
    SELECT regexp_replace(sequencename, '_[a-z]+_seq$', '') AS name, coalesce(last_value, 0) AS seq
    FROM pg_sequences WHERE schemaname = current_schema();
