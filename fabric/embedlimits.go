package fabric

import (
	"context"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// EmbedLimits bound what whoever reads an embed key in a page may take by it, at all
// nodes together. 0 is no limit.
type EmbedLimits struct {
	Tokens  int // guest tokens, a minute and key
	Sockets int // sockets opened with them, a minute and key
}

// embedWindow is how long is counted together.
const embedWindow = time.Minute

// AdmitSocket counts a socket that is opened with a token: problem.RateLimited where
// the token came from an embed key and too many were opened by that.
func (es *EmbedKeys) AdmitSocket(ctx context.Context, t Token) error {
	if !t.Embedded {
		return nil
	}
	return es.count(ctx, "embed-socket", t.KeyID, es.c.EmbedLimits.Sockets)
}

// count counts a use of a key, up to a limit. While the session store cannot count,
// nobody is refused: a limit is no reason to be away.
func (es *EmbedKeys) count(ctx context.Context, kind, keyID string, limit int) error {
	if limit <= 0 || es.c.Sessions == nil {
		return nil
	}
	now := es.now()
	window := now.Truncate(embedWindow)
	key := session.Key{Kind: kind, ID: keyID + ":" + strconv.FormatInt(window.Unix(), 10)}
	if n, err := es.c.Sessions.Incr(ctx, key, 2*embedWindow); err != nil || n <= int64(limit) {
		return nil
	}
	return &problem.Error{
		Kind: problem.RateLimited, Code: "rate_limit_exceeded", Message: "the embed key is used too often",
		RetryAfter: window.Add(embedWindow).Sub(now),
	}
}
