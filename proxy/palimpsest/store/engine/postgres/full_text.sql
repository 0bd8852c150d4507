-- The full-text index: which passages of a tenant hold a term, in segments of 16,384 ids. See full_text.py.

CREATE TABLE memory_text (                  -- as the table of FTS5 looks
    rowid BIGINT PRIMARY KEY,
    tokens TEXT COLLATE "C" NOT NULL        -- the last two are those of `digest.scope_terms`
);
CREATE VIEW memory_text_content AS SELECT rowid AS id FROM memory_text;
CREATE TABLE posting (
    tenant BIGINT NOT NULL,
    term TEXT COLLATE "C" NOT NULL,
    segment BIGINT NOT NULL,                -- passages with these first bits
    passages BIGINT[] NOT NULL,             -- rising
    PRIMARY KEY (tenant, term, segment)
);
CREATE VIEW term AS                          -- it follows from the postings; what is written to it on SQLite is not here
    SELECT tenant, term, sum(cardinality(passages))::bigint AS memories FROM posting GROUP BY tenant, term;
CREATE RULE insert_term AS ON INSERT TO term DO INSTEAD NOTHING;
CREATE RULE update_term AS ON UPDATE TO term DO INSTEAD NOTHING;
CREATE RULE delete_term AS ON DELETE TO term DO INSTEAD NOTHING;

CREATE FUNCTION terms_of(tokens text) RETURNS TABLE(tenant bigint, term text) IMMUTABLE LANGUAGE sql AS $$
    WITH owner AS MATERIALIZED (SELECT substring(tokens from '\ue000t([0-9]+) \S+$')::bigint AS tenant) -- once
    SELECT DISTINCT owner.tenant, one FROM owner CROSS JOIN unnest(string_to_array(tokens, ' ')) AS one
    WHERE one <> '' AND left(one, 1) <> E'\ue000'
$$;
CREATE FUNCTION add_postings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO posting AS known (tenant, term, segment, passages)
    SELECT one.tenant, one.term, added.rowid >> 14, array_agg(added.rowid ORDER BY added.rowid)
    FROM added CROSS JOIN LATERAL terms_of(added.tokens) AS one GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (tenant, term, segment) DO UPDATE SET passages =
        CASE WHEN excluded.passages[1] > known.passages[cardinality(known.passages)]
        THEN known.passages || excluded.passages
        ELSE ARRAY(SELECT DISTINCT id FROM unnest(known.passages || excluded.passages) AS id ORDER BY id) END;
    RETURN NULL;
END
$$;
CREATE FUNCTION remove_postings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE posting SET passages = ARRAY(
        SELECT id FROM unnest(posting.passages) AS id WHERE id <> ALL (gone.passages) ORDER BY id)
    FROM (SELECT one.tenant, one.term, removed.rowid >> 14 AS segment, array_agg(removed.rowid) AS passages
        FROM removed CROSS JOIN LATERAL terms_of(removed.tokens) AS one GROUP BY 1, 2, 3) AS gone
    WHERE posting.tenant = gone.tenant AND posting.term = gone.term AND posting.segment = gone.segment;
    DELETE FROM posting USING (
        SELECT DISTINCT one.tenant, one.term FROM removed CROSS JOIN LATERAL terms_of(removed.tokens) AS one) AS gone
    WHERE posting.tenant = gone.tenant AND posting.term = gone.term AND posting.passages = '{}';
    RETURN NULL;
END
$$;
CREATE TRIGGER add_postings AFTER INSERT ON memory_text
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_postings();
CREATE TRIGGER remove_postings AFTER DELETE ON memory_text
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION remove_postings();

CREATE FUNCTION passages_holding(whose bigint, words text, after bigint) RETURNS text STABLE LANGUAGE sql AS $$
    -- `words` begin with the term, in double quotes
    SELECT string_agg(CASE WHEN segment > after >> 14 THEN array_to_string(passages, ',')
        ELSE array_to_string(ARRAY(SELECT id FROM unnest(passages) AS id WHERE id > after ORDER BY id), ',') END,
        ',' ORDER BY segment)
    FROM posting WHERE tenant = whose AND segment >= after >> 14
        AND passages[cardinality(passages)] > after
        AND term = replace(substring(words from '^"((?:[^"]|"")*)"'), '""', '"')
$$;
