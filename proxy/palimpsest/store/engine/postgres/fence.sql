-- Whose rows are seen and written, as a setting says (connection.py): `all`, or the ids of tenants. Whoever sets nothing
-- sees nothing.

CREATE FUNCTION sees_all() RETURNS boolean STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT current_setting('palimpsest.tenants', true) = 'all'
$$;
CREATE FUNCTION seen_tenants() RETURNS bigint[] STABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT string_to_array(nullif(current_setting('palimpsest.tenants', true), 'all'), ',')::bigint[]
$$;
CREATE FUNCTION see_tenants(names text[], local boolean) RETURNS text LANGUAGE sql AS $$
    SELECT set_config('palimpsest.tenants', coalesce(string_agg(id::text, ','), ''), local)
    FROM tenant WHERE name = ANY (names)
$$;
CREATE FUNCTION lock_tenants(class integer, whole integer, keys bigint[], names text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(class, whole);
    PERFORM pg_advisory_xact_lock(one) FROM unnest(keys) AS one;
    IF names IS NOT NULL THEN
        PERFORM see_tenants(names, true); -- now, as somebody else may have made one of them meanwhile
    END IF;
END
$$;
CREATE FUNCTION see_new_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT sees_all() THEN
        PERFORM set_config('palimpsest.tenants', array_to_string(seen_tenants() || NEW.id, ','), true);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER see_new_tenant AFTER INSERT ON tenant FOR EACH ROW EXECUTE FUNCTION see_new_tenant();
