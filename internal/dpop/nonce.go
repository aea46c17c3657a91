package dpop

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"
)

// An offer is a nonce, and the Unix second in which it was computed.
type offer struct {
	second int64
	nonce  string
}

// Nonce returns the current nonce, for the header DPoP-Nonce. It computes the nonce once a second,
// so that a new key takes effect within a second.
func (v *Verifier) Nonce() string {
	second := v.c.Now().Unix()
	if last := v.offered.Load(); last != nil && last.second == second {
		return last.nonce
	}
	nonce := v.nonceOf(second / periodSeconds)
	v.offered.Store(&offer{second, nonce})
	return nonce
}

// periodSeconds is the length of a period, which has one nonce. Periods are counted from the Unix
// epoch.
const periodSeconds = int64(nonceFor / time.Second)

func (v *Verifier) nonceOf(period int64) string {
	key := v.c.Key("dpop nonce")
	mac := hmac.New(sha256.New, key[:])
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(period)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// isRecent reports whether nonce is the current nonce or the previous one. It also accepts the next
// one, which a node whose clock is ahead may have issued.
func (v *Verifier) isRecent(nonce string) bool {
	current := v.c.Now().Unix() / periodSeconds
	return sameText(nonce, v.nonceOf(current)) ||
		sameText(nonce, v.nonceOf(current-1)) ||
		sameText(nonce, v.nonceOf(current+1))
}

// Offer sets the header DPoP-Nonce on responses to requests with a proof.
func (v *Verifier) Offer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Dpop"]) > 0 {
			w.Header().Set("DPoP-Nonce", v.Nonce())
		}
		next.ServeHTTP(w, r)
	})
}
