-- The roles that Supabase brings; made here where there is no Supabase. It takes a superuser.
DO $$
BEGIN
    IF to_regrole('anon') IS NULL THEN
        CREATE ROLE anon NOLOGIN;
    END IF;
    IF to_regrole('authenticated') IS NULL THEN
        CREATE ROLE authenticated NOLOGIN;
    END IF;
    IF to_regrole('service_role') IS NULL THEN
        CREATE ROLE service_role NOLOGIN BYPASSRLS;
    END IF;
END
$$;
