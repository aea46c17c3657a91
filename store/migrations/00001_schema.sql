-- +goose Up

-- Numbers handed out in the order of commits: an UPDATE locks the row until its transaction ends.
CREATE TABLE sequences (
    name   TEXT PRIMARY KEY,
    value  BIGINT NOT NULL
);
INSERT INTO sequences (name, value) VALUES
    ('operators', 0),   -- serializes changes that add or remove owners
    ('presences', 0),   -- serializes nodes that look for due presences
    ('revocations', 0), -- the number of the last revocation
    ('ring', 0);        -- counts changes of the key ring; every node reads it once a second

-- Signing and sealing keys, sealed by the master key. They rotate.
CREATE TABLE ring (
    kid        TEXT PRIMARY KEY,
    use        TEXT NOT NULL,             -- RS256 | ES256 | seal
    state      TEXT NOT NULL,             -- next | current | retired
    sealed     TEXT NOT NULL,
    created    BIGINT NOT NULL,
    activated  BIGINT NOT NULL DEFAULT 0, -- when the key began to sign or seal
    retired    BIGINT NOT NULL DEFAULT 0,
    bound      TEXT NOT NULL DEFAULT ''   -- a code that ties the key to the beginning of the audit trail
);
CREATE UNIQUE INDEX ring_current ON ring (use) WHERE state = 'current';
CREATE UNIQUE INDEX ring_next ON ring (use) WHERE state = 'next';

CREATE TABLE revocations (
    seq      BIGINT PRIMARY KEY,
    kind     TEXT NOT NULL,             -- token | grant | family | session | subscriber | client | key | project
    id       TEXT NOT NULL,
    until    BIGINT NOT NULL,
    expires  BIGINT NOT NULL
);
CREATE INDEX revocations_expires ON revocations (expires);

-- Shared state of nodes that obtain certificates by ACME: the account, each host's certificate with its
-- key, answers to challenges, and the claims of nodes that order one.
CREATE TABLE certificates (
    name     TEXT PRIMARY KEY,
    sealed   TEXT NOT NULL,   -- by the master key
    updated  BIGINT NOT NULL  -- of a claim: when it expires
);

-- The audit trail, see package audit. Events are added in lanes, each a chain of hashes. No index
-- is unique: the chain reveals changes.
CREATE TABLE audit (
    lane         BIGINT NOT NULL,
    seq          BIGINT NOT NULL,            -- the place in the lane, from 1
    id           TEXT NOT NULL,
    at           BIGINT NOT NULL,
    project_id   TEXT NOT NULL,              -- '' for the installation; kept when the project is deleted
    action       TEXT NOT NULL,
    outcome      TEXT NOT NULL,
    actor_kind   TEXT NOT NULL,
    actor_id     TEXT NOT NULL,
    target_kind  TEXT NOT NULL,
    target_id    TEXT NOT NULL,
    address      TEXT NOT NULL,
    request_id   TEXT NOT NULL,
    detail       TEXT NOT NULL,              -- a JSON object, or ''
    hash         TEXT NOT NULL               -- HMAC of the event and the hash before it
);
CREATE INDEX audit_lane ON audit (lane, seq);
CREATE INDEX audit_id ON audit (id);
CREATE INDEX audit_project ON audit (project_id, id);
-- Finds events of operators, and of people who were shown a secret, by the actor. It leaves out all other
-- events, which are most. Queries must repeat this condition literally.
CREATE INDEX audit_actor ON audit (actor_id, id) WHERE (actor_kind = 'operator' OR action = 'api_key.created' OR action = 'api_key.rotated'
    OR action = 'embed_key.created' OR action = 'client.created' OR action = 'client.secret_rotated');

-- The end of each lane, and what was pruned at its beginning. SQLite uses the first lane only; on
-- PostgreSQL concurrent changes take turns in them.
CREATE TABLE audit_heads (
    lane         BIGINT PRIMARY KEY,
    seq          BIGINT NOT NULL DEFAULT 0,
    hash         TEXT NOT NULL DEFAULT '',
    mac          TEXT NOT NULL DEFAULT '',
    pruned_seq   BIGINT NOT NULL DEFAULT 0,
    pruned_hash  TEXT NOT NULL DEFAULT '',
    pruned_mac   TEXT NOT NULL DEFAULT ''
);
INSERT INTO audit_heads (lane) VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15);

CREATE TABLE projects (
    id              TEXT PRIMARY KEY,
    name            TEXT NOT NULL,
    record_rate     BIGINT NOT NULL,                 -- micro-units per minute
    media_auth      TEXT NOT NULL DEFAULT 'public',  -- public | basic | signed
    require_factor  BIGINT NOT NULL DEFAULT 0,       -- 1 if logins of subscribers need two factors
    color           TEXT NOT NULL DEFAULT '',        -- of mails and pages
    registration    TEXT NOT NULL DEFAULT 'off',     -- who may create an account
    logo            TEXT NOT NULL DEFAULT '',        -- the name of a row of logos
    terms_uri       TEXT NOT NULL DEFAULT '',
    policy_uri      TEXT NOT NULL DEFAULT '',
    created         BIGINT NOT NULL,
    updated         BIGINT NOT NULL
);

-- What `selvage apply` created. Only these things may be removed once the file no longer names
-- them. A mark of something deleted does no harm.
CREATE TABLE declared (
    id          TEXT PRIMARY KEY,            -- of the key, client, subscriber, resource or webhook
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE
);
CREATE INDEX declared_project ON declared (project_id);

-- A key has a second secret while it is rotated.
CREATE TABLE api_keys (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    prefix      TEXT NOT NULL,               -- the first characters, to recognize the key by
    hash        TEXT NOT NULL,               -- SHA-256 of the key, which is not stored
    scopes      TEXT NOT NULL,               -- space-separated
    created     BIGINT NOT NULL,
    expires     BIGINT NOT NULL DEFAULT 0,
    revoked     BIGINT NOT NULL DEFAULT 0,   -- 0 unless revoked
    last_used   BIGINT NOT NULL DEFAULT 0,   -- to the hour
    rotated     BIGINT NOT NULL DEFAULT 0,
    old_hash    TEXT NOT NULL DEFAULT '',
    old_until   BIGINT NOT NULL DEFAULT 0,
    old_used    BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX api_keys_hash ON api_keys (hash);
CREATE INDEX api_keys_project ON api_keys (project_id, id);
CREATE INDEX api_keys_old_hash ON api_keys (old_hash) WHERE old_hash <> '';

CREATE TABLE subscribers (
    id              TEXT PRIMARY KEY,
    project_id      TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    email           TEXT,                       -- NFC, lower case; NULL if missing
    reference       TEXT,                       -- NULL if missing
    password_hash   TEXT NOT NULL DEFAULT '',   -- '' if no password is set
    first_name      TEXT NOT NULL DEFAULT '',
    last_name       TEXT NOT NULL DEFAULT '',
    display_name    TEXT NOT NULL DEFAULT '',
    job_title       TEXT NOT NULL DEFAULT '',
    time_zone       TEXT NOT NULL DEFAULT '',
    country         TEXT NOT NULL DEFAULT '',
    company_name    TEXT NOT NULL DEFAULT '',
    region          TEXT NOT NULL DEFAULT '',
    claims          TEXT NOT NULL DEFAULT '{}', -- other standard claims: a JSON object (OpenID Connect Core, section 5.1)
    email_verified  BIGINT NOT NULL DEFAULT 0,
    disabled        BIGINT NOT NULL DEFAULT 0,
    epoch           BIGINT NOT NULL DEFAULT 0,  -- counts resets of all credentials; marks of earlier epochs are void
    logins          BIGINT NOT NULL DEFAULT 0,  -- counts logins; the first sends no notice
    created         BIGINT NOT NULL,
    updated         BIGINT NOT NULL
);
CREATE UNIQUE INDEX subscribers_email ON subscribers (project_id, email);
CREATE UNIQUE INDEX subscribers_reference ON subscribers (project_id, reference);
CREATE INDEX subscribers_project ON subscribers (project_id, id);
-- Find the kinds of imported hashes. The query must repeat this condition literally.
CREATE INDEX subscribers_imported ON subscribers (password_hash)
    WHERE password_hash <> '' AND SUBSTR(password_hash, 1, 31) <> '$argon2id$v=19$m=19456,t=2,p=1$';
-- Find subscribers by the beginning of a name, in either case. Queries must repeat these
-- expressions literally. The last is the last word of the display name.
CREATE INDEX subscribers_by_first ON subscribers (project_id, LOWER(first_name || ' ' || last_name), id) WHERE first_name <> '';
CREATE INDEX subscribers_by_last ON subscribers (project_id, LOWER(last_name || ' ' || first_name), id) WHERE last_name <> '';
CREATE INDEX subscribers_by_display ON subscribers (project_id, LOWER(display_name), id) WHERE display_name <> '';
CREATE INDEX subscribers_by_word ON subscribers (project_id, LOWER(SUBSTR(display_name, LENGTH(RTRIM(display_name, REPLACE(display_name, ' ', ''))) + 1)), id)
    WHERE display_name <> REPLACE(display_name, ' ', '');

CREATE TABLE addresses (
    id            TEXT PRIMARY KEY,
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    resource_id   TEXT NOT NULL,             -- of a resource or subscriber
    type          TEXT NOT NULL,             -- app | room | call | subscriber
    context       TEXT NOT NULL,             -- private | public
    name          TEXT NOT NULL,
    display_name  TEXT NOT NULL,
    channels      TEXT NOT NULL DEFAULT 'audio messaging video',
    hidden        BIGINT NOT NULL DEFAULT 0, -- 1 if its subscriber is disabled
    created       BIGINT NOT NULL
);
CREATE UNIQUE INDEX addresses_name ON addresses (project_id, context, name);
CREATE INDEX addresses_resource ON addresses (resource_id, id);
-- Lists leave out hidden addresses. Each order has its own index, which is read from the beginning of a page.
CREATE INDEX addresses_by_id ON addresses (project_id, id) WHERE hidden = 0;
CREATE INDEX addresses_by_name ON addresses (project_id, name, id) WHERE hidden = 0;
CREATE INDEX addresses_by_type ON addresses (project_id, type, id) WHERE hidden = 0;
CREATE INDEX addresses_by_type_name ON addresses (project_id, type, name, id) WHERE hidden = 0;

-- Keys embedded in web pages. Each creates guest tokens for one address.
CREATE TABLE embed_keys (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    address_id  TEXT NOT NULL REFERENCES addresses (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    prefix      TEXT NOT NULL,               -- the first characters, to recognize the key by
    hash        TEXT NOT NULL,               -- SHA-256
    created     BIGINT NOT NULL,
    revoked     BIGINT NOT NULL DEFAULT 0    -- 0 unless revoked
);
CREATE UNIQUE INDEX embed_keys_hash ON embed_keys (hash);
CREATE INDEX embed_keys_project ON embed_keys (project_id, id);
CREATE INDEX embed_keys_address ON embed_keys (address_id);

-- Devices that receive a push when a subscriber is called while no app is open.
CREATE TABLE devices (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    subscriber_id  TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    type           TEXT NOT NULL,            -- iOS | Android | Desktop
    name           TEXT NOT NULL,
    token_hash     TEXT NOT NULL,            -- SHA-256 of the token of the push service
    sealed         TEXT NOT NULL,            -- the token, and the key that seals pushes
    created        BIGINT NOT NULL
);
CREATE INDEX devices_subscriber ON devices (subscriber_id, id);
CREATE INDEX devices_project ON devices (project_id);

-- Chains of refresh tokens: one row per family, written when its first token is used.
CREATE TABLE families (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    subscriber_id  TEXT NOT NULL DEFAULT '',
    client_id      TEXT NOT NULL DEFAULT '',
    generation     BIGINT NOT NULL,           -- of the one token that may be used next
    revoked        BIGINT NOT NULL DEFAULT 0,
    created        BIGINT NOT NULL DEFAULT 0,
    used           BIGINT NOT NULL DEFAULT 0,
    expires        BIGINT NOT NULL            -- when the last of the tokens expires
);
CREATE INDEX families_project ON families (project_id);
CREATE INDEX families_expires ON families (expires);
CREATE INDEX families_subscriber ON families (subscriber_id, id) WHERE subscriber_id <> '';

-- Everything that can be called, except subscribers.
CREATE TABLE resources (
    id            TEXT PRIMARY KEY,
    project_id    TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    type          TEXT NOT NULL,             -- ai_agent and so on
    display_name  TEXT NOT NULL,
    name_digest   TEXT,                      -- equal for names that readers confuse; unique per type; NULL without a name
    fields        TEXT NOT NULL,             -- a JSON object, described by the type's schema
    secrets       TEXT NOT NULL DEFAULT '',
    handler_id    TEXT NOT NULL DEFAULT '',  -- the resource that takes its calls
    created       BIGINT NOT NULL,
    updated       BIGINT NOT NULL
);
CREATE INDEX resources_project ON resources (project_id, id);
CREATE INDEX resources_type ON resources (project_id, type, id);
CREATE INDEX resources_handler ON resources (handler_id) WHERE handler_id <> '';
CREATE UNIQUE INDEX resources_name ON resources (project_id, type, name_digest);

-- Deployed versions of a resource, with its members at that time.
CREATE TABLE resource_versions (
    id                TEXT PRIMARY KEY,
    project_id        TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    resource_id       TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    number            BIGINT NOT NULL,       -- 1, 2, 3 within the resource
    document_version  BIGINT NOT NULL,
    fields            TEXT NOT NULL,         -- a JSON object
    created           BIGINT NOT NULL
);
CREATE UNIQUE INDEX resource_versions_number ON resource_versions (resource_id, number);
CREATE INDEX resource_versions_resource ON resource_versions (resource_id, id);

-- The resource that handles the calls or messages of a phone number.
CREATE TABLE phone_routes (
    id           TEXT NOT NULL,              -- of the number, in the telephony platform
    project_id   TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    handler      TEXT NOT NULL,              -- calling | messaging
    resource_id  TEXT NOT NULL,
    assigned     BIGINT NOT NULL,
    PRIMARY KEY (project_id, id, handler)
);
CREATE INDEX phone_routes_resource ON phone_routes (resource_id);

-- Where SIP systems reach a resource: user@name.domain.
CREATE TABLE sip_addresses (
    id           TEXT PRIMARY KEY,
    project_id   TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    resource_id  TEXT NOT NULL,              -- takes the calls
    name         TEXT NOT NULL,
    "user"       TEXT NOT NULL,              -- * matches any
    fields       TEXT NOT NULL,              -- the other members: a JSON object
    secrets      TEXT NOT NULL DEFAULT '',   -- the password, sealed; '' without one
    created      BIGINT NOT NULL,
    updated      BIGINT NOT NULL
);
CREATE UNIQUE INDEX sip_addresses_name ON sip_addresses (name, "user");
CREATE INDEX sip_addresses_project ON sip_addresses (project_id, id);
CREATE INDEX sip_addresses_resource ON sip_addresses (resource_id);

-- Credentials with which a subscriber's phones register.
CREATE TABLE sip_credentials (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    subscriber_id  TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    username       TEXT NOT NULL,
    fields         TEXT NOT NULL,            -- the other members: a JSON object
    secrets        TEXT NOT NULL,            -- the password, sealed
    created        BIGINT NOT NULL,
    updated        BIGINT NOT NULL
);
CREATE UNIQUE INDEX sip_credentials_username ON sip_credentials (project_id, username);
CREATE INDEX sip_credentials_subscriber ON sip_credentials (subscriber_id, id);

-- Receivers of events about a project's subscribers and resources.
CREATE TABLE webhooks (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    url         TEXT NOT NULL,
    name        TEXT NOT NULL,
    events      TEXT NOT NULL,               -- each between spaces: ' subscriber.created resource.deleted '; ' * ' means all
    enabled     BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    updated     BIGINT NOT NULL,
    lease       BIGINT NOT NULL DEFAULT 0,   -- until when one node alone delivers to it
    holder      TEXT NOT NULL DEFAULT '',    -- that node
    failures    BIGINT NOT NULL DEFAULT 0,   -- in a row
    rests       BIGINT NOT NULL DEFAULT 0    -- until when nothing is sent to it
);
CREATE INDEX webhooks_project ON webhooks (project_id, id);

-- Events to deliver: one row per webhook that wants the event, written in the transaction of the
-- change that the event describes. A row references no other, so that it never waits for the
-- deletion of its webhook.
CREATE TABLE webhook_deliveries (
    webhook_id  TEXT NOT NULL,
    id          TEXT NOT NULL,               -- of the event
    event       TEXT NOT NULL,
    subject     TEXT NOT NULL,               -- the subscriber or resource
    body        TEXT NOT NULL,               -- JSON, sent byte for byte
    state       TEXT NOT NULL,               -- pending | delivered | dead
    created     BIGINT NOT NULL,
    queued      BIGINT NOT NULL,             -- when it was last queued
    due         BIGINT NOT NULL,             -- the earliest time of the next attempt
    attempts    BIGINT NOT NULL DEFAULT 0,   -- since it was queued
    status      BIGINT NOT NULL DEFAULT 0,   -- of the last response; 0 if there was none
    error       TEXT NOT NULL DEFAULT '',    -- why there was no response
    ended       BIGINT NOT NULL DEFAULT 0,   -- when it was delivered or given up; 0 while pending
    PRIMARY KEY (webhook_id, id)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_state ON webhook_deliveries (webhook_id, state, id);
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (state, ended);

-- Keys that sign a project's webhook deliveries. The one that started last signs.
CREATE TABLE signing_keys (
    id          TEXT PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    sealed      TEXT NOT NULL,
    created     BIGINT NOT NULL,
    starts      BIGINT NOT NULL              -- 0 for a project's first key
);
CREATE UNIQUE INDEX signing_keys_starts ON signing_keys (project_id, starts);

-- Whether the last event of a subscriber's presence was online. The session store has the current state;
-- if they differ, the node that raises the version sends the next event.
CREATE TABLE presences (
    subscriber_id  TEXT PRIMARY KEY REFERENCES subscribers (id) ON DELETE CASCADE,
    project_id     TEXT NOT NULL,
    online         BIGINT NOT NULL,
    version        BIGINT NOT NULL,
    due            BIGINT NOT NULL           -- when to check again
);
CREATE INDEX presences_due ON presences (online, due);

-- OAuth clients. After a rotation the old secret may stay valid for a while.
CREATE TABLE clients (
    id                TEXT PRIMARY KEY,
    project_id        TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name              TEXT NOT NULL,
    type              TEXT NOT NULL,              -- spa | native | web | service
    profile           TEXT NOT NULL,              -- default | mobile-legacy
    auth_method       TEXT NOT NULL,              -- none | client_secret_basic | client_secret_post
    secret_hash       TEXT NOT NULL DEFAULT '',
    secret_made       BIGINT NOT NULL DEFAULT 0,
    old_secret_hash   TEXT NOT NULL DEFAULT '',
    old_secret_until  BIGINT NOT NULL DEFAULT 0,
    old_secret_used   BIGINT NOT NULL DEFAULT 0,
    first_party       BIGINT NOT NULL DEFAULT 0,
    pkce_optional     BIGINT NOT NULL DEFAULT 0,
    redirect_uris     TEXT NOT NULL DEFAULT '[]', -- a JSON array
    logout_uris       TEXT NOT NULL DEFAULT '[]', -- a JSON array
    grants            TEXT NOT NULL,              -- space-separated, like scopes
    scopes            TEXT NOT NULL,
    access_token      TEXT NOT NULL,              -- fabric | jwt
    id_token_alg      TEXT NOT NULL,              -- RS256 | ES256
    metadata          TEXT NOT NULL DEFAULT '{}', -- less common members: a JSON object (names of RFC 7591)
    logo              TEXT NOT NULL DEFAULT '',   -- the name of a row of logos
    created           BIGINT NOT NULL,
    updated           BIGINT NOT NULL
);
CREATE INDEX clients_project ON clients (project_id, id);

-- Pictures of projects and clients on pages and in mails. A name derives from the content;
-- the same picture may be stored more than once.
CREATE TABLE logos (
    project_id  TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    client_id   TEXT REFERENCES clients (id) ON DELETE CASCADE,  -- NULL for that of the project
    name        TEXT NOT NULL,
    body        TEXT NOT NULL                                    -- a PNG, in base64
);
CREATE UNIQUE INDEX logos_project ON logos (project_id) WHERE client_id IS NULL;
CREATE UNIQUE INDEX logos_client ON logos (client_id) WHERE client_id IS NOT NULL;
CREATE INDEX logos_name ON logos (name);

CREATE TABLE login_sessions (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    subscriber_id  TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    auth_time      BIGINT NOT NULL,
    amr            TEXT NOT NULL,
    user_agent     TEXT NOT NULL,
    address        TEXT NOT NULL,             -- the network address of the browser
    expires        BIGINT NOT NULL,           -- the absolute end of the cookie
    ended          BIGINT NOT NULL DEFAULT 0, -- 0 unless ended
    browser        TEXT NOT NULL DEFAULT '',  -- digest of the cookie's id, to restore the login when the session store was emptied
    seen           BIGINT NOT NULL DEFAULT 0, -- when the browser was last here
    place          BIGINT NOT NULL DEFAULT 0, -- among the browser's logins in the project; 0 is the one in use
    mark           TEXT NOT NULL DEFAULT ''   -- digest of the browser's mark; unlike browser it stays when the cookie is renewed
);
CREATE INDEX login_sessions_subscriber ON login_sessions (subscriber_id, id);
CREATE INDEX login_sessions_browser ON login_sessions (browser) WHERE browser <> '';
CREATE INDEX login_sessions_mark ON login_sessions (mark, id) WHERE mark <> '';

CREATE TABLE grants (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    client_id      TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
    subscriber_id  TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    session_id     TEXT NOT NULL,
    scope          TEXT NOT NULL,
    auth_time      BIGINT NOT NULL,
    amr            TEXT NOT NULL,
    refresh_hash   TEXT NOT NULL DEFAULT '',  -- '' without a refresh token
    seed           TEXT NOT NULL DEFAULT '',  -- sealed; with the refresh token before it, it makes the refresh token
    rotated        BIGINT NOT NULL DEFAULT 0, -- when the refresh token was last replaced
    claims         TEXT NOT NULL DEFAULT '',  -- requested individually: a JSON object, '' for none
    resources      TEXT NOT NULL DEFAULT '',  -- permitted audiences (RFC 8707), space-separated; '' means the issuer only
    created        BIGINT NOT NULL,
    idle_until     BIGINT NOT NULL,           -- extended by each refresh
    expires        BIGINT NOT NULL,
    revoked        BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX grants_session ON grants (session_id);
CREATE INDEX grants_subscriber ON grants (subscriber_id, id);

-- A code is redeemed once: by the request that inserts its hash.
CREATE TABLE redeemed_codes (
    hash       TEXT PRIMARY KEY,
    grant_id   TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    expires    BIGINT NOT NULL
);
CREATE INDEX redeemed_codes_expires ON redeemed_codes (expires);

-- A client assertion (RFC 7523) is used once: by the request that inserts its digest.
CREATE TABLE used_assertions (
    hash     TEXT PRIMARY KEY,
    expires  BIGINT NOT NULL              -- when the assertion is no longer accepted
);
CREATE INDEX used_assertions_expires ON used_assertions (expires);

CREATE TABLE consents (
    subscriber_id  TEXT NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
    client_id      TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
    scope          TEXT NOT NULL,             -- everything agreed to so far, space-separated
    updated        BIGINT NOT NULL,
    PRIMARY KEY (subscriber_id, client_id)
);

-- Clients that receive logouts (OpenID Connect Back-Channel Logout), and at which URI.
CREATE TABLE logout_receivers (
    id          TEXT PRIMARY KEY REFERENCES clients (id) ON DELETE CASCADE,
    project_id  TEXT NOT NULL,
    url         TEXT NOT NULL,
    lease       BIGINT NOT NULL DEFAULT 0,   -- these four as in webhooks
    holder      TEXT NOT NULL DEFAULT '',
    failures    BIGINT NOT NULL DEFAULT 0,
    rests       BIGINT NOT NULL DEFAULT 0
);

-- Logouts to deliver: one row per client that had a grant of the login, written by the change that
-- ended the login. The token is signed when it is sent. As with webhooks, a row references no other.
CREATE TABLE logout_deliveries (
    client_id      TEXT NOT NULL,
    session_id     TEXT NOT NULL,
    subscriber_id  TEXT NOT NULL,
    state          TEXT NOT NULL,             -- pending | delivered | dead
    created        BIGINT NOT NULL,
    queued         BIGINT NOT NULL,           -- these six as in webhook_deliveries
    due            BIGINT NOT NULL,
    attempts       BIGINT NOT NULL DEFAULT 0,
    status         BIGINT NOT NULL DEFAULT 0,
    error          TEXT NOT NULL DEFAULT '',
    ended          BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (client_id, session_id)
);
CREATE INDEX logout_deliveries_due ON logout_deliveries (client_id, due) WHERE state = 'pending';
CREATE INDEX logout_deliveries_state ON logout_deliveries (client_id, state, session_id);
CREATE INDEX logout_deliveries_ended ON logout_deliveries (state, ended);

-- Second factors. The owner is a subscriber or an operator; deleting it deletes these rows, too.
CREATE TABLE passkeys (
    id          TEXT PRIMARY KEY,
    owner_kind  TEXT NOT NULL,              -- subscriber | operator
    owner_id    TEXT NOT NULL,
    credential  TEXT NOT NULL,              -- the credential id, in base64url
    name        TEXT NOT NULL,
    record      TEXT NOT NULL,              -- the credential record, as JSON: a public key, no secret
    count       BIGINT NOT NULL,            -- of its signatures; 0 if it does not count
    synced      BIGINT NOT NULL,
    backed_up   BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    used        BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX passkeys_credential ON passkeys (credential);
CREATE INDEX passkeys_owner ON passkeys (owner_id, owner_kind, id);

CREATE TABLE totps (
    owner_kind  TEXT NOT NULL,
    owner_id    TEXT NOT NULL,
    id          TEXT NOT NULL,
    sealed      TEXT NOT NULL,              -- the secret, sealed by the master key
    step        BIGINT NOT NULL,            -- of the last accepted code
    created     BIGINT NOT NULL,
    used        BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (owner_id, owner_kind)
);

-- A recovery code is used once: by the request that deletes its row.
CREATE TABLE recovery_codes (
    owner_kind  TEXT NOT NULL,
    owner_id    TEXT NOT NULL,
    hash        TEXT NOT NULL,              -- HMAC-SHA-256 under a key derived from the master key
    created     BIGINT NOT NULL,
    PRIMARY KEY (owner_id, owner_kind, hash)
);

-- Mails to send, and sent ones. None holds a secret: a link is created when its mail is sent. As with
-- webhooks, a row references no other.
CREATE TABLE mails (
    id             TEXT PRIMARY KEY,
    project_id     TEXT NOT NULL,             -- '' for mails of the installation
    subscriber_id  TEXT NOT NULL,             -- '' if it is looked up by the address
    kind           TEXT NOT NULL,
    recipient      TEXT NOT NULL,
    facts          TEXT NOT NULL,             -- a JSON object; '{}' once sent
    state          TEXT NOT NULL,             -- pending | sent | kept | dead
    created        BIGINT NOT NULL,
    due            BIGINT NOT NULL,           -- the earliest time of the next attempt; during one, the end of its lease
    attempts       BIGINT NOT NULL DEFAULT 0,
    error          TEXT NOT NULL DEFAULT '',  -- why the last attempt failed
    ended          BIGINT NOT NULL DEFAULT 0  -- when it was sent or given up
);
CREATE INDEX mails_due ON mails (due) WHERE state = 'pending';
CREATE INDEX mails_state ON mails (state, id);
CREATE INDEX mails_ended ON mails (state, ended);
CREATE INDEX mails_subscriber ON mails (subscriber_id);
CREATE INDEX mails_recipient ON mails (recipient);

-- Mailed links that may still be used, each by the SHA-256 of its token. A row is deleted with its
-- use, and with the subscriber or project it belongs to.
CREATE TABLE mail_links (
    hash           TEXT PRIMARY KEY,
    purpose        TEXT NOT NULL,             -- the kind of its mail
    project_id     TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    subscriber_id  TEXT REFERENCES subscribers (id) ON DELETE CASCADE, -- NULL if there is none yet
    email          TEXT NOT NULL,             -- where it was sent
    inviter        TEXT NOT NULL,             -- '' unless it is an invitation
    request        TEXT NOT NULL,             -- the authorization request to resume, '' for none
    created        BIGINT NOT NULL,
    expires        BIGINT NOT NULL
);
CREATE INDEX mail_links_project ON mail_links (project_id);
CREATE INDEX mail_links_subscriber ON mail_links (subscriber_id);
CREATE INDEX mail_links_expires ON mail_links (expires);

-- People who run the installation, their roles, logins in the dashboard, and links.
CREATE TABLE operators (
    id             TEXT PRIMARY KEY,
    email          TEXT NOT NULL UNIQUE, -- NFC, lower case
    name           TEXT NOT NULL,
    password_hash  TEXT NOT NULL,        -- '' if no password is set
    disabled       BIGINT NOT NULL,
    created        BIGINT NOT NULL,
    updated        BIGINT NOT NULL
);

CREATE TABLE operator_roles (
    operator_id  TEXT NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
    project_id   TEXT REFERENCES projects (id) ON DELETE CASCADE, -- NULL means every project, and the installation
    role         TEXT NOT NULL
);
CREATE UNIQUE INDEX operator_roles_once ON operator_roles (operator_id, COALESCE(project_id, ''));
CREATE INDEX operator_roles_project ON operator_roles (project_id);

CREATE TABLE operator_sessions (
    id           TEXT PRIMARY KEY,
    operator_id  TEXT NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
    browser      TEXT NOT NULL,     -- digest of the cookie
    proven       BIGINT NOT NULL,   -- 0 while a second factor is required
    amr          TEXT NOT NULL,
    began        BIGINT NOT NULL,
    fresh        BIGINT NOT NULL,   -- when the operator last authenticated
    seen         BIGINT NOT NULL,
    expires      BIGINT NOT NULL,
    ended        BIGINT NOT NULL,   -- 0 unless ended
    user_agent   TEXT NOT NULL,
    address      TEXT NOT NULL
);
CREATE UNIQUE INDEX operator_sessions_browser ON operator_sessions (browser);
CREATE INDEX operator_sessions_operator ON operator_sessions (operator_id, id);

CREATE TABLE operator_links (
    id           TEXT PRIMARY KEY,
    hash         TEXT NOT NULL UNIQUE, -- SHA-256 of the link's token
    operator_id  TEXT REFERENCES operators (id) ON DELETE CASCADE, -- who may set a new password; NULL in an invitation
    email        TEXT NOT NULL,        -- of the invited; '' leaves it to them
    project_id   TEXT REFERENCES projects (id) ON DELETE CASCADE,
    role         TEXT NOT NULL,
    made_by      TEXT NOT NULL,        -- e-mail of the operator who made it; '' for the command line
    created      BIGINT NOT NULL,
    expires      BIGINT NOT NULL,
    used         BIGINT NOT NULL       -- 0 unless used
);

-- A recording in progress has a row before it has media: its status is then in-progress, paused or
-- stopped.
CREATE TABLE recordings (
    id               TEXT PRIMARY KEY,
    sid              TEXT NOT NULL,
    project_id       TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    identity         TEXT,                      -- equal for repeated uploads; NULL for none
    media_key        TEXT,                      -- names the media; NULL if the id does
    call_sid         TEXT,
    conference_sid   TEXT,
    from_address     TEXT NOT NULL,
    to_address       TEXT NOT NULL,
    direction        TEXT NOT NULL,
    source           TEXT NOT NULL,
    track            TEXT NOT NULL,
    start_time       BIGINT NOT NULL,           -- 0 if unknown
    status           TEXT NOT NULL,             -- completed | absent | in-progress | paused | stopped
    error_code       TEXT NOT NULL,
    codec            TEXT NOT NULL,
    sample_rate      BIGINT NOT NULL,
    channels         BIGINT NOT NULL,
    bits             BIGINT NOT NULL,
    frames           BIGINT NOT NULL,
    bytes            BIGINT NOT NULL,
    sha256           TEXT NOT NULL,
    repairs          TEXT NOT NULL,             -- one per line
    levels           TEXT NOT NULL DEFAULT '',  -- measured in the sound, see levels.Facts.Text; '' if not measured
    flags            BIGINT NOT NULL DEFAULT 0, -- bits: 1 silent, 2 one-way, 4 clipped, 8 dead air
    price            BIGINT NOT NULL,           -- micro-units
    waits            BIGINT NOT NULL DEFAULT 0, -- until when it waits for its media; 0 if it does not
    trim             TEXT NOT NULL DEFAULT 'do-not-trim',
    pause_behavior   TEXT NOT NULL DEFAULT '',
    callback_url     TEXT NOT NULL DEFAULT '',
    callback_events  TEXT NOT NULL DEFAULT '',  -- space-separated
    callback_method  TEXT NOT NULL DEFAULT '',
    created          BIGINT NOT NULL,
    updated          BIGINT NOT NULL,
    deleted          BIGINT NOT NULL DEFAULT 0  -- since when it is a stub without media
);
CREATE UNIQUE INDEX recordings_sid ON recordings (sid);
CREATE UNIQUE INDEX recordings_identity ON recordings (project_id, identity) WHERE deleted = 0;
CREATE INDEX recordings_project ON recordings (project_id, id);
CREATE INDEX recordings_call ON recordings (project_id, call_sid, id) WHERE call_sid IS NOT NULL;
CREATE INDEX recordings_conference ON recordings (project_id, conference_sid, id) WHERE conference_sid IS NOT NULL;
CREATE INDEX recordings_deleted ON recordings (deleted) WHERE deleted <> 0;
CREATE UNIQUE INDEX recordings_media ON recordings (media_key) WHERE media_key IS NOT NULL;
CREATE INDEX recordings_waits ON recordings (waits) WHERE waits <> 0;
-- Lists leave out deleted recordings unless asked for them.
CREATE INDEX recordings_live ON recordings (project_id, id) WHERE deleted = 0;
-- Few recordings have a flag; lists filter by it.
CREATE INDEX recordings_silent ON recordings (project_id, id) WHERE (flags & 1) <> 0;
CREATE INDEX recordings_one_way ON recordings (project_id, id) WHERE (flags & 2) <> 0;
CREATE INDEX recordings_clipped ON recordings (project_id, id) WHERE (flags & 4) <> 0;
CREATE INDEX recordings_dead_air ON recordings (project_id, id) WHERE (flags & 8) <> 0;
CREATE INDEX recordings_direction ON recordings (project_id, direction, id);
CREATE INDEX recordings_from ON recordings (project_id, from_address, id) WHERE from_address <> '';
CREATE INDEX recordings_to ON recordings (project_id, to_address, id) WHERE to_address <> '';

-- Subscribers whose address a call came from or went to; a recording may belong to two.
CREATE TABLE recording_subscribers (
    subscriber_id  TEXT NOT NULL,
    recording_id   TEXT NOT NULL REFERENCES recordings (id) ON DELETE CASCADE,
    PRIMARY KEY (subscriber_id, recording_id)
);
CREATE INDEX recording_subscribers_recording ON recording_subscribers (recording_id);
