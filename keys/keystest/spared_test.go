package keystest

import (
	"context"
	"sync"

	"github.com/selvage/selvage/keys"
)

// spared is a PKCS8 that reuses a few RSA keys, because creating RSA keys would take most of the
// tests' time. All keys are used before any is reused, so that a ring's current and next key
// differ. Rings distinguish keys by their kids.
type spared struct{ keys.PKCS8 }

const spare = 12

var made struct {
	sync.Mutex
	keys [spare][]byte
	next int
}

func (s spared) Make(ctx context.Context, use keys.Use) (handle []byte, err error) {
	if use != keys.RS256 && use != keys.PS256 {
		return s.PKCS8.Make(ctx, use)
	}
	made.Lock()
	defer made.Unlock()
	n := made.next % spare
	made.next++
	if made.keys[n] == nil {
		made.keys[n], err = s.PKCS8.Make(ctx, use)
	}
	return made.keys[n], err
}
