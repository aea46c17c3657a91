-- +goose Up

-- Conversations between two members, or in a conference room.
CREATE TABLE conversations (
    id         TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    pair       TEXT NOT NULL,             -- the ids of both members, or the address of the room
    room       BIGINT NOT NULL DEFAULT 0,
    created    BIGINT NOT NULL,
    last_id    TEXT NOT NULL DEFAULT '',  -- of its newest message
    last_at    BIGINT NOT NULL DEFAULT 0  -- when that was sent
);
CREATE UNIQUE INDEX conversations_pair ON conversations (project_id, pair);
CREATE INDEX conversations_last ON conversations (last_at) WHERE room = 0;

CREATE TABLE conversation_members (
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    member_id       TEXT NOT NULL,        -- the subscriber, or an id of the guest
    subscriber_id   TEXT REFERENCES subscribers (id) ON DELETE CASCADE, -- NULL for a guest
    address_id      TEXT NOT NULL,        -- at which others reach the member
    peer            TEXT NOT NULL,        -- the address at which the member reaches the conversation
    joined          BIGINT NOT NULL,
    PRIMARY KEY (conversation_id, member_id)
);
CREATE INDEX conversation_members_member ON conversation_members (member_id, conversation_id);
CREATE INDEX conversation_members_subscriber ON conversation_members (subscriber_id) WHERE subscriber_id IS NOT NULL;

CREATE TABLE messages (
    id              TEXT PRIMARY KEY,     -- sorts by its place in the conversation
    project_id      TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    room            BIGINT NOT NULL,
    from_member     TEXT NOT NULL,
    from_address    TEXT NOT NULL,
    from_name       TEXT NOT NULL,
    to_member       TEXT NOT NULL,        -- '' in a room
    to_address      TEXT NOT NULL,
    text            TEXT NOT NULL,
    send_key        TEXT NOT NULL DEFAULT '', -- chosen by the sender, to repeat a request
    created         BIGINT NOT NULL
);
CREATE INDEX messages_conversation ON messages (conversation_id, id);
CREATE INDEX messages_project ON messages (project_id);
CREATE INDEX messages_from ON messages (from_member, id);
CREATE INDEX messages_to ON messages (to_member, id) WHERE to_member <> '';
CREATE UNIQUE INDEX messages_key ON messages (conversation_id, from_member, send_key) WHERE send_key <> '';
