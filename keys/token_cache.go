package keys

import "sync"

// maxOpened is the maximum number of tokens that are remembered. When it is reached, all of them
// are forgotten.
const maxOpened = 4096

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

func (o *tokenCache) find(token string) (tokenContent, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	s, ok := o.m[token]
	return s, ok
}

func (o *tokenCache) keep(token string, s tokenContent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.m == nil || len(o.m) >= maxOpened {
		o.m = make(map[string]tokenContent)
	}
	o.m[token] = s
}

// Remembered is like [Sealer.OpenBy], but calls read to parse the claims, and remembers the result
// until the ring changes. The result is shared, so callers must not change it. Callers must check
// on each call whether the token has become invalid for other reasons, such as its own expiry.
func (s *Sealer) Remembered(token string, read func(payload []byte) (any, error)) (v any, kid string, ok bool) {
	if known, ok := s.ends().opened.find(token); ok {
		return known.v, known.kid, true
	}

	now, e, payload := s.payload(token)
	if e == nil {
		return nil, "", false
	}

	v, err := read(payload)
	if err != nil {
		return nil, "", false
	}
	now.opened.keep(token, tokenContent{e.kid, v})
	return v, e.kid, true
}
