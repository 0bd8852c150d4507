-- The full-text index: which passages of a tenant hold a term, in segments of 16,384 ids. See full_text.py.
-- A tenant's newest passages, 32 at most, wait to be put there together: most of their terms stand in several. Until
-- then a search looks through their tokens.

CREATE TABLE memory_text (                  -- as the table of FTS5 looks
    rowid BIGINT NOT NULL,
    tokens TEXT COLLATE "C" NOT NULL,       -- the last two are those of `digest.scope_terms`
    tenant BIGINT GENERATED ALWAYS AS
        (coalesce(substring(split_part(tokens, ' ', -2) from '^\ue000t([0-9]+)$')::bigint, 0)) STORED,
    PRIMARY KEY (rowid, tenant)
);
CREATE INDEX memory_text_by_tenant ON memory_text(tenant, rowid);
CREATE VIEW memory_text_content AS SELECT rowid AS id FROM memory_text;
CREATE TABLE posting (
    tenant BIGINT NOT NULL,
    term TEXT COLLATE "C" NOT NULL,
    segment BIGINT NOT NULL,                -- passages with these first bits
    passages BIGINT[] NOT NULL,             -- rising
    PRIMARY KEY (tenant, term, segment)
);
CREATE TABLE posted (
    tenant BIGINT PRIMARY KEY,
    passage BIGINT NOT NULL                 -- those behind it wait
);

CREATE FUNCTION terms_of(tokens text) RETURNS TABLE(term text) IMMUTABLE LANGUAGE sql AS $$
    SELECT DISTINCT one FROM unnest(string_to_array(tokens, ' ')) AS one WHERE one <> '' AND left(one, 1) <> E'\ue000'
$$;
CREATE FUNCTION post(passages_to_post bigint[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO posting AS known (tenant, term, segment, passages)
    SELECT tenant, term, rowid >> 14, array_agg(rowid ORDER BY rowid) FROM (
        SELECT DISTINCT tenant, rowid, unnest(string_to_array(tokens, ' ')) COLLATE "C" AS term
        FROM memory_text WHERE rowid = ANY (passages_to_post)) AS held
    WHERE term <> '' AND left(term, 1) <> E'\ue000' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (tenant, term, segment) DO UPDATE SET passages =
        CASE WHEN excluded.passages[1] > known.passages[cardinality(known.passages)]
        THEN known.passages || excluded.passages
        ELSE ARRAY(SELECT DISTINCT id FROM unnest(known.passages || excluded.passages) AS id ORDER BY id) END
$$;
CREATE FUNCTION post_all() RETURNS void LANGUAGE sql AS $$
    SELECT post(ARRAY(SELECT rowid FROM memory_text LEFT JOIN posted ON posted.tenant = memory_text.tenant
        WHERE rowid > coalesce(posted.passage, 0)));
    INSERT INTO posted SELECT tenant, max(rowid) FROM memory_text GROUP BY tenant
    ON CONFLICT (tenant) DO UPDATE SET passage = excluded.passage
$$;

CREATE VIEW term AS                         -- it follows from the others; what is written to it on SQLite is not here
    SELECT tenant, term, sum(memories)::bigint AS memories FROM (
        SELECT tenant, term, cardinality(passages) AS memories FROM posting
        UNION ALL SELECT waiting.tenant, one.term, 1
        FROM memory_text AS waiting LEFT JOIN posted ON posted.tenant = waiting.tenant
        CROSS JOIN LATERAL terms_of(waiting.tokens) AS one
        WHERE rowid > coalesce(posted.passage, 0)) AS counted
    GROUP BY tenant, term;
CREATE RULE insert_term AS ON INSERT TO term DO INSTEAD NOTHING;
CREATE RULE update_term AS ON UPDATE TO term DO INSTEAD NOTHING;
CREATE RULE delete_term AS ON DELETE TO term DO INSTEAD NOTHING;

CREATE FUNCTION add_postings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    one record;
    waiting bigint[];
BEGIN
    FOR one IN
        SELECT added.tenant AS whose, coalesce(posted.passage, 0) AS last,
            array_agg(rowid) FILTER (WHERE rowid <= posted.passage) AS again
        FROM added LEFT JOIN posted ON posted.tenant = added.tenant
        GROUP BY 1, 2 ORDER BY 1
    LOOP
        IF one.again IS NOT NULL THEN
            PERFORM post(one.again);
        END IF;
        waiting := ARRAY(SELECT rowid FROM memory_text WHERE tenant = one.whose AND rowid > one.last);
        IF cardinality(waiting) > 32 THEN
            PERFORM post(waiting);
            INSERT INTO posted SELECT one.whose, max(passage) FROM unnest(waiting) AS passage
            ON CONFLICT (tenant) DO UPDATE SET passage = excluded.passage;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
CREATE FUNCTION remove_postings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE posting SET passages = ARRAY(
        SELECT id FROM unnest(posting.passages) AS id WHERE id <> ALL (gone.passages) ORDER BY id)
    FROM (SELECT removed.tenant, one.term, rowid >> 14 AS segment, array_agg(rowid) AS passages
        FROM removed CROSS JOIN LATERAL terms_of(tokens) AS one GROUP BY 1, 2, 3) AS gone
    WHERE posting.tenant = gone.tenant AND posting.term = gone.term AND posting.segment = gone.segment;
    DELETE FROM posting USING (
        SELECT DISTINCT removed.tenant, one.term FROM removed CROSS JOIN LATERAL terms_of(tokens) AS one) AS gone
    WHERE posting.tenant = gone.tenant AND posting.term = gone.term AND posting.passages = '{}';
    DELETE FROM posted WHERE tenant IN (SELECT tenant FROM removed)
        AND NOT EXISTS (SELECT 1 FROM memory_text WHERE memory_text.tenant = posted.tenant);
    RETURN NULL;
END
$$;
CREATE TRIGGER add_postings AFTER INSERT ON memory_text
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_postings();
CREATE TRIGGER remove_postings AFTER DELETE ON memory_text
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION remove_postings();

CREATE FUNCTION waiting_of(whose bigint) RETURNS TABLE(passage bigint, tokens text) STABLE LANGUAGE sql AS $$
    SELECT rowid, ' ' || tokens FROM memory_text
    WHERE tenant = whose AND rowid > coalesce((SELECT posted.passage FROM posted WHERE tenant = whose), 0)
$$;
CREATE FUNCTION counted(whose bigint, terms text) RETURNS TABLE(term text, memories bigint) STABLE LANGUAGE sql AS $$
    WITH waiting AS MATERIALIZED (SELECT tokens FROM waiting_of(whose))
    SELECT asked.value, found.memories FROM texts(terms) AS asked CROSS JOIN LATERAL (
        SELECT (SELECT coalesce(sum(cardinality(passages)), 0) FROM posting
                WHERE tenant = whose AND posting.term = asked.value)
            + (SELECT count(*) FROM waiting WHERE strpos(tokens, ' ' || asked.value || ' ') > 0) AS memories) AS found
    WHERE found.memories > 0 AND left(asked.value, 1) <> E'\ue000'
$$;
CREATE FUNCTION found(whose bigint, asked text, most_terms bigint, most_passages bigint)
RETURNS TABLE(term text, memories bigint, passages text) STABLE LANGUAGE sql AS $$
    WITH one AS MATERIALIZED (
        SELECT item(value, 0) COLLATE "C" AS term, item(value, 1)::bigint AS known FROM arrays(asked)),
    waiting AS MATERIALIZED (SELECT passage, tokens FROM waiting_of(whose)),
    held AS (
        SELECT one.term, one.known, held.memories, row_number() OVER rarest AS place, sum(held.memories) OVER rarest AS total
        FROM one JOIN counted(whose, (SELECT json_agg(one.term)::text FROM one)) AS held ON held.term = one.term
        WINDOW rarest AS (ORDER BY held.memories, one.term))
    SELECT term, memories, CASE WHEN place <= most_terms AND total <= most_passages THEN concat_ws(',', (
            SELECT string_agg(CASE WHEN posting.passages[1] > known THEN array_to_string(posting.passages, ',')
                ELSE array_to_string(ARRAY(
                    SELECT id FROM unnest(posting.passages) AS id WHERE id > known ORDER BY id), ',') END,
                ',' ORDER BY segment)
            FROM posting WHERE tenant = whose AND posting.term = held.term AND segment >= known >> 14
                AND posting.passages[cardinality(posting.passages)] > known
        ), (
            SELECT string_agg(passage::text, ',' ORDER BY passage) FROM waiting
            WHERE passage > known AND strpos(tokens, ' ' || held.term || ' ') > 0)) END
    FROM held ORDER BY place
$$;
