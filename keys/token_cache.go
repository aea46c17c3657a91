package keys

import (
	"strings"
	"sync"
)

// maxOpened is the maximum number of tokens that are remembered. When it is reached, all of them
// are forgotten.
const maxOpened = 4096

// maxRemembered is the length in bytes of the longest token that is remembered. It bounds the memory of
// a cache. Tokens are usually shorter, but anyone who has a token can write it in many longer ways,
// because decoders ignore line breaks.
const maxRemembered = 2 << 10

// A tokenCache remembers the contents of valid tokens that were opened or verified, because callers
// present the same token repeatedly. It belongs to one snapshot of the ring, and is dropped
// together with it.
type tokenCache struct {
	mu sync.RWMutex
	m  map[string]tokenContent
}

// A tokenContent holds the content of a valid token, and the kid of the key that signed or sealed it.
type tokenContent struct {
	kid string
	v   any
}

// find returns the content of a token that is remembered.
func (c *tokenCache) find(token string) (tokenContent, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	content, ok := c.m[token]
	return content, ok
}

// keep remembers the content of a token, unless the token is too long. It stores a copy of the token,
// because the token may be a part of a much larger request.
func (c *tokenCache) keep(token string, content tokenContent) {
	if len(token) > maxRemembered {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= maxOpened {
		c.m = make(map[string]tokenContent)
	}
	c.m[strings.Clone(token)] = content
}

// Remembered is like [Sealer.OpenBy], but calls read to parse the claims, and remembers the result
// until the ring changes. The result is shared, so callers must not change it. Callers must check
// on each call whether the token has become invalid for other reasons, such as its own expiry.
func (s *Sealer) Remembered(token string, read func(payload []byte) (any, error)) (v any, kid string, ok bool) {
	if known, ok := s.keys().opened.find(token); ok {
		return known.v, known.kid, true
	}

	current, key, payload := s.payload(token)
	if key == nil {
		return nil, "", false
	}
	v, err := read(payload)
	if err != nil {
		return nil, "", false
	}
	current.opened.keep(token, tokenContent{key.kid, v})
	return v, key.kid, true
}
