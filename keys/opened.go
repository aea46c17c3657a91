package keys

import "sync"

// maxOpened bounds what is remembered of opened tokens: what is full starts anew.
const maxOpened = 4096

// An opened remembers what good tokens of a Sealer say, for who shows the same one again
// and again. It belongs to one state of the ring and goes with it.
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

// Remembered is [Sealer.OpenBy] with what read makes of the claims, which is remembered
// under the keys that there are: so it is shared, and must not be changed. What may end
// before the keys, such as the token itself, is looked at each time.
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
