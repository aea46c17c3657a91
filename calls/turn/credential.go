package turn

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"
)

// credentials returns a username and password for a holder of tokens. The name begins with the time
// of expiry, in seconds since 1970, and the password is a signature of the name. Therefore, each
// node can check credentials by itself (draft-uberti-behave-turn-rest, section 2.2).
func (s *Server) credentials(holder string, expires time.Time) (username, password string) {
	username = strconv.FormatInt(expires.Unix(), 10) + ":" + s.sign("holder", holder)[:16]
	return username, s.sign("password", username)
}

func (s *Server) sign(use, text string) string {
	h := hmac.New(sha256.New, s.config.Secret[:])
	h.Write([]byte(use + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// authenticate returns the key of a user (RFC 8489, section 9.2.2). The credentials for a new allocation
// must not have expired.
func (s *Server) authenticate(r *turn.RequestAttributes) (user string, key []byte, ok bool) {
	at, holder, found := strings.Cut(r.Username, ":")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if !found || err != nil {
		return "", nil, false
	}

	expires := time.Unix(seconds, 0)
	if r.Method != stun.MethodAllocate {
		expires = expires.Add(s.config.Longest)
	}
	if !time.Now().Before(expires) {
		return "", nil, false
	}
	return holder, turn.GenerateAuthKey(r.Username, realm, s.sign("password", r.Username)), true
}
