package keys

import "sync"

// maxOpened is how many opened tokens are remembered; beyond that, all are forgotten.
const maxOpened = 4096

// An opened remembers the contents of a Sealer's valid tokens, for callers that present
// the same token repeatedly. It belongs to one snapshot of the ring and is dropped with it.
type opened struct {
	mu sync.RWMutex
	m  map[string]said
}

type said struct {
	kid string
	v   any
}

func (o *opened) find(token string) (said, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	s, ok := o.m[token]
	return s, ok
}

func (o *opened) keep(token string, s said) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.m == nil || len(o.m) >= maxOpened {
		o.m = make(map[string]said)
	}
	o.m[token] = s
}

// Remembered is [Sealer.OpenBy] with a function that reads the claims. The value that read
// returns is kept until the ring changes. It is shared, so callers must not change it.
// Callers must check on each call whatever may end earlier, such as the token's own expiry.
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
	now.opened.keep(token, said{e.kid, v})
	return v, e.kid, true
}
