-- why: tables, views, triggers of monitored services; functions are in sql/monitors/functions
-- locks: none that matters (creates new objects only)

-- What is to be polled: written by people and applications, read by rounds. No table that rounds
-- write to refers to it: rounds and editors never wait for each other.
CREATE TABLE hybrid_monitors.services (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    url text NOT NULL,
    -- An address that names none is refused by check_service() before this is reached.
    host text COLLATE "C" NOT NULL GENERATED ALWAYS AS (
        lower(coalesce(
            substring(url FROM '^[^:/?#]*://(?:[^/?#@]*@)?(\[[^\]]*\]|[^]:/?#[]*)'), ''
        ) COLLATE "C")
    ) STORED,
    every interval NOT NULL DEFAULT '30 s',
    timeout interval NOT NULL DEFAULT '10 s',
    -- left out: mapping if there is one, else dependencies
    format text NOT NULL,
    mapping jsonb,
    expect jsonb,
    headers jsonb,
    -- how many redirects
    follow integer NOT NULL DEFAULT 0,
    fail_after integer NOT NULL DEFAULT 1,
    recover_after integer NOT NULL DEFAULT 1,
    -- the service that this one cannot do without; one that is gone counts as none
    depends_on bigint,
    labels jsonb NOT NULL DEFAULT '{}',
    active boolean NOT NULL DEFAULT true,
    -- until then nothing bad is told
    quiet_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT services_one_per_name UNIQUE (name)
);
CREATE INDEX services_by_host ON hybrid_monitors.services (host) WHERE active;
CREATE INDEX services_by_parent ON hybrid_monitors.services (depends_on)
WHERE depends_on IS NOT NULL;

-- Where a polled service stands: one narrow row, which rounds change in place. What each poll
-- changes comes first and what seldom changes last, so that little is logged of a change.
CREATE TABLE hybrid_monitors.standings (
    service_id bigint PRIMARY KEY,
    due_at timestamptz NOT NULL,
    polled_at timestamptz,
    latency_ms integer,
    failures integer NOT NULL DEFAULT 0,
    recoveries integer NOT NULL DEFAULT 0,
    ok boolean,
    is_down boolean NOT NULL DEFAULT false,
    told_down boolean NOT NULL DEFAULT false,
    is_unsettled boolean NOT NULL DEFAULT false,
    -- whether it was polled, and service:started is told: not while its first poll is put off
    is_started boolean NOT NULL DEFAULT true,
    -- since when it is down, or up
    since timestamptz,
    -- of the polls in a row that say the contrary, the first
    contrary_since timestamptz,
    opened_at timestamptz,
    certificate_ends_at timestamptz,
    breaker text NOT NULL DEFAULT 'closed',
    digest text,
    -- of the service when it was polled: whoever was deleted is still called so
    host text COLLATE "C" NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    failure text,
    error text,
    warnings jsonb NOT NULL DEFAULT '[]',
    CONSTRAINT standings_breaker_is_known CHECK (breaker IN ('closed', 'open', 'half_open'))
) WITH (
    fillfactor = 60,
    -- Each row is written every half minute, and what that leaves is pruned by the next one that
    -- comes to the page: a vacuum a minute has next to nothing to do. What is known of the columns
    -- does not change with it.
    autovacuum_vacuum_scale_factor = 1, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 20
);
CREATE INDEX standings_by_host ON hybrid_monitors.standings (host);

-- One row for each host: which round has it, and what that one has on its way.
CREATE TABLE hybrid_monitors.hosts (
    host text COLLATE "C" PRIMARY KEY,
    -- when somebody last looked what is due here
    looked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- when the next of those is due that were not taken then, or were recorded since
    next_due_at timestamptz,
    round_job bigint,
    round_claim bigint,
    round_began_at timestamptz,
    round_services bigint[] NOT NULL DEFAULT '{}'
) WITH (
    -- as above
    fillfactor = 50, autovacuum_vacuum_scale_factor = 1, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 20
);

-- Which services somebody wants to be polled now.
CREATE TABLE hybrid_monitors.asked (
    service_id bigint PRIMARY KEY,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    asked_by text NOT NULL DEFAULT session_user
);

-- What services said of their dependencies, as of the last change.
CREATE TABLE hybrid_monitors.dependencies (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    service_id bigint NOT NULL,
    -- looked up a thousand times in a round, which is dearer in other collations
    name text COLLATE "C" NOT NULL,
    canonical_name text NOT NULL,
    type text NOT NULL DEFAULT 'other',
    description text,
    impact text,
    healthy boolean NOT NULL,
    -- 0 OK, 1 WARNING, 2 CRITICAL
    state smallint NOT NULL DEFAULT 0,
    code integer NOT NULL DEFAULT 200,
    latency_ms integer NOT NULL DEFAULT 0,
    skipped boolean NOT NULL DEFAULT false,
    contact jsonb,
    check_details jsonb,
    error jsonb,
    error_message text,
    last_checked timestamptz NOT NULL,
    last_status_change timestamptz,
    -- how often in a row an answer said the contrary of healthy
    contrary smallint NOT NULL DEFAULT 0,
    -- whether its last change to unhealthy was told
    told boolean NOT NULL DEFAULT true,
    -- in how many answers in a row it was not
    missing smallint NOT NULL DEFAULT 0,
    -- the newest one of its history, which is forgotten after a while
    last_error jsonb,
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX dependencies_one_per_service_and_name
ON hybrid_monitors.dependencies (service_id, name) INCLUDE (id);
CREATE INDEX dependencies_by_canonical_name ON hybrid_monitors.dependencies (canonical_name);

-- What the same dependency is called everywhere.
CREATE TABLE hybrid_monitors.aliases (
    alias text PRIMARY KEY,
    canonical_name text NOT NULL
);

-- Maintenance: what is bad meanwhile is stored and not told.
CREATE TABLE hybrid_monitors.windows (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- this service, or all that have these labels; {} is all services
    service_id bigint,
    label jsonb,
    begins timestamptz NOT NULL,
    ends timestamptz NOT NULL,
    -- again and again, this long from one beginning to the next
    every interval,
    reason text
);

-- History of errors, without repeats: of a dependency, or of the polls of a service.
CREATE TABLE hybrid_monitors.errors (
    at timestamptz NOT NULL,
    service_id bigint NOT NULL,
    -- NULL: the polls themselves
    dependency_id bigint,
    -- NULL: it has recovered
    error jsonb,
    message text
) PARTITION BY RANGE (at);
CREATE INDEX errors_by_dependency ON hybrid_monitors.errors (dependency_id, at)
WHERE dependency_id IS NOT NULL;
CREATE INDEX errors_by_service ON hybrid_monitors.errors (service_id, at)
WHERE dependency_id IS NULL;

-- What answers said of latencies: one row for each round, since there are many.
CREATE TABLE hybrid_monitors.latencies (
    at timestamptz NOT NULL,
    host text COLLATE "C" NOT NULL,
    dependency_ids bigint[] NOT NULL,
    milliseconds integer[] NOT NULL
) PARTITION BY RANGE (at);
CREATE INDEX latencies_by_host ON hybrid_monitors.latencies (host, at);
CREATE INDEX latencies_by_age ON hybrid_monitors.latencies (at);

-- The same by hours, kept for longer. How many were at most 1, 2, 5 … ms, as latency_bounds() has
-- it, and in the last place how many were more.
CREATE TABLE hybrid_monitors.hours (
    hour timestamptz NOT NULL,
    dependency_id bigint NOT NULL,
    answers integer NOT NULL,
    sum_ms bigint NOT NULL,
    max_ms integer NOT NULL,
    buckets integer[] NOT NULL,
    PRIMARY KEY (dependency_id, hour)
) PARTITION BY RANGE (hour);

-- What happened, in the order of commits: ids have no gaps, so whoever reads on from the last one
-- misses none. Written by rounds alone.
CREATE TABLE hybrid_monitors.events (
    id bigint NOT NULL,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    service_id bigint NOT NULL,
    payload jsonb NOT NULL,
    -- why it was not told: maintenance or parent
    suppressed text,
    PRIMARY KEY (id, at)
) PARTITION BY RANGE (at);
CREATE INDEX events_by_service ON hybrid_monitors.events (service_id, id);

CREATE TABLE hybrid_monitors.event_numbers (
    is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one),
    last bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO hybrid_monitors.event_numbers DEFAULT VALUES;

-- Until when somebody reads events live, as server-clock milliseconds: as
-- hybrid_runner.stream_readers_until.
CREATE SEQUENCE hybrid_monitors.event_readers_until AS bigint MINVALUE 0 START 0;

-- How long what is kept, and how wide its partitions are.
CREATE TABLE hybrid_monitors.retention (
    what text PRIMARY KEY,
    keep interval NOT NULL,
    unit text NOT NULL,
    CONSTRAINT retention_unit_is_known CHECK (unit IN ('day', 'month')),
    CONSTRAINT retention_keep_is_an_hour_to_ten_years CHECK (
        keep >= '1 hour' AND keep <= '3653 days'
        AND extract(year FROM keep) = 0 AND extract(month FROM keep) = 0
        AND extract(day FROM keep) BETWEEN 0 AND 3653
    )
);
INSERT INTO hybrid_monitors.retention (what, keep, unit) VALUES
    ('latencies', '24 hours', 'day'), ('hours', '90 days', 'month'), ('errors', '90 days', 'month'),
    ('events', '30 days', 'day');

-- Until when hours are made of latencies, and when upkeep last ended. Locked by who does it.
CREATE TABLE hybrid_monitors.upkeep_runs (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    rolled_up_until timestamptz,
    ended_at timestamptz
);
INSERT INTO hybrid_monitors.upkeep_runs DEFAULT VALUES;

CREATE VIEW hybrid_monitors.latency_history AS
SELECT u.dependency_id, l.at, u.ms
FROM hybrid_monitors.latencies AS l
CROSS JOIN LATERAL unnest(l.dependency_ids, l.milliseconds) AS u (dependency_id, ms);

CREATE VIEW hybrid_monitors.partitions AS
SELECT
    r.what, part.relname::text AS partition, bound.text = 'DEFAULT' AS is_default,
    substring(bound.text FROM 'FROM \(''([^'']+)''\)')::timestamptz AS lower,
    substring(bound.text FROM 'TO \(''([^'']+)''\)')::timestamptz AS upper
FROM hybrid_monitors.retention AS r
JOIN pg_class AS whole ON whole.relname = r.what
    AND whole.relnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = 'hybrid_monitors')
JOIN pg_inherits AS i ON i.inhparent = whole.oid
JOIN pg_class AS part ON part.oid = i.inhrelid AND part.relnamespace = whole.relnamespace
CROSS JOIN LATERAL pg_get_expr(part.relpartbound, part.oid) AS bound (text);

-- A safety only: partitions are made ahead, so nothing should land here.
CREATE TABLE hybrid_monitors.errors_default PARTITION OF hybrid_monitors.errors DEFAULT;
CREATE TABLE hybrid_monitors.latencies_default PARTITION OF hybrid_monitors.latencies DEFAULT;
CREATE TABLE hybrid_monitors.hours_default PARTITION OF hybrid_monitors.hours DEFAULT;
CREATE TABLE hybrid_monitors.events_default PARTITION OF hybrid_monitors.events DEFAULT;

-- What add_service() and update_service() are given.
CREATE TYPE hybrid_monitors.service_columns AS (
    name text, url text, every interval, timeout interval, format text, mapping jsonb,
    expect jsonb, headers jsonb, follow integer, fail_after integer, recover_after integer,
    depends_on bigint, labels jsonb, active boolean, quiet_until timestamptz
);

-- Views and triggers need functions that are there before them; their bodies are in
-- sql/monitors/functions.
CREATE FUNCTION hybrid_monitors.is_window_open(
    begins timestamptz, ends timestamptz, every interval, at timestamptz
) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION hybrid_monitors.check_service() RETURNS trigger
LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION hybrid_monitors.check_alias() RETURNS trigger
LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION hybrid_monitors.check_window() RETURNS trigger
LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION hybrid_monitors.services_inserted() RETURNS trigger
LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION hybrid_monitors.services_updated() RETURNS trigger
LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION hybrid_monitors.services_deleted() RETURNS trigger
LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION hybrid_monitors.services_truncated() RETURNS trigger
LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';

CREATE TRIGGER check_service BEFORE INSERT OR UPDATE ON hybrid_monitors.services
FOR EACH ROW EXECUTE FUNCTION hybrid_monitors.check_service();
CREATE TRIGGER check_alias BEFORE INSERT OR UPDATE ON hybrid_monitors.aliases
FOR EACH ROW EXECUTE FUNCTION hybrid_monitors.check_alias();
CREATE TRIGGER check_window BEFORE INSERT OR UPDATE ON hybrid_monitors.windows
FOR EACH ROW EXECUTE FUNCTION hybrid_monitors.check_window();

CREATE TRIGGER services_inserted AFTER INSERT ON hybrid_monitors.services
REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION hybrid_monitors.services_inserted();
CREATE TRIGGER services_updated AFTER UPDATE ON hybrid_monitors.services
REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION hybrid_monitors.services_updated();
CREATE TRIGGER services_deleted AFTER DELETE ON hybrid_monitors.services
REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION hybrid_monitors.services_deleted();
CREATE TRIGGER services_truncated AFTER TRUNCATE ON hybrid_monitors.services
FOR EACH STATEMENT EXECUTE FUNCTION hybrid_monitors.services_truncated();

-- Of which services nothing bad is told now because somebody said so. Not each service with each
-- window: labels meet by one pair of each window's, that which the fewest windows have.
CREATE VIEW hybrid_monitors.maintained AS
WITH open_windows AS MATERIALIZED (
    SELECT DISTINCT w.service_id, w.label FROM hybrid_monitors.windows AS w
    WHERE hybrid_monitors.is_window_open(w.begins, w.ends, w.every, now())
),
rarest AS MATERIALIZED (
    SELECT DISTINCT ON (p.label) p.label, p.key, p.value
    FROM (
        SELECT o.label, e.key, e.value, count(*) OVER (PARTITION BY e.key, e.value) AS windows
        FROM open_windows AS o
        CROSS JOIN LATERAL jsonb_each(o.label) AS e
    ) AS p
    ORDER BY p.label, p.windows, p.key
)
SELECT s.id AS service_id FROM hybrid_monitors.services AS s
WHERE s.quiet_until > now()
    OR s.id IN (SELECT o.service_id FROM open_windows AS o)
    OR EXISTS (SELECT FROM open_windows AS o WHERE o.label = '{}')
UNION
SELECT p.id
FROM (
    SELECT l.id, l.labels, e.key, e.value
    -- unpacked once, and not for each comparison
    FROM (SELECT s.id, s.labels || '{}' AS labels FROM hybrid_monitors.services AS s OFFSET 0) AS l
    CROSS JOIN LATERAL jsonb_each(l.labels) AS e
    OFFSET 0 -- so that each of these looks a window up, and not each service all windows
) AS p
JOIN rarest AS r ON r.key = p.key AND r.value = p.value
WHERE p.labels @> r.label AND EXISTS (SELECT FROM rarest);

-- What people look at first: how each service is, in one word, and why.
CREATE VIEW hybrid_monitors.overview AS
SELECT
    s.id, s.name, s.host,
    CASE
        WHEN NOT s.active THEN 'paused'
        WHEN s.id IN (SELECT m.service_id FROM hybrid_monitors.maintained AS m) THEN 'maintenance'
        WHEN st.polled_at IS NULL THEN 'unknown'
        WHEN st.is_down THEN 'down'
        ELSE 'up'
    END AS state,
    st.since, st.failure, st.error, coalesce(st.breaker, 'closed') AS breaker,
    coalesce(st.failures, 0) AS failures, st.latency_ms, st.polled_at,
    CASE WHEN s.active THEN st.due_at END AS due_at,
    coalesce(st.warnings, '[]') AS warnings, s.labels
FROM hybrid_monitors.services AS s
LEFT JOIN hybrid_monitors.standings AS st ON st.service_id = s.id;
