package keys_test

import (
	"context"
	"sync"

	"github.com/selvage/selvage/keys"
)

// spared is PKCS8 with RSA keys that come again after some others: to make each anew
// would take most of the time of these tests. A ring never has one twice for a use and
// its next, and tells keys apart by their kids.
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
