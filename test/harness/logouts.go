package harness

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// A LogoutToken holds the claims of a logout token, which a client receives when a login ends.
type LogoutToken struct {
	ID        string `json:"jti"`
	Subject   string `json:"sub"`
	SessionID string `json:"sid"`
	Audience  string `json:"aud"`
	Expires   int64  `json:"exp"`
}

// A Hangup is a client's back-channel logout endpoint.
type Hangup struct {
	URL string

	mu       sync.Mutex
	answer   int
	received []LogoutToken
	fault    error
}

// NewHangup starts a Hangup that responds with 200 to every request.
func NewHangup(t T) *Hangup {
	t.Helper()
	h := &Hangup{answer: http.StatusOK}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)

	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	h.URL = "http://localhost:" + port + "/logout"
	return h
}

func (h *Hangup) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, err := readLogoutToken(r.PostFormValue("logout_token"))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = errors.Join(h.fault, err)
	h.received = append(h.received, token)
	w.WriteHeader(h.answer)
}

// readLogoutToken decodes the claims of a token and checks that the token has not expired. It does
// not check the signature, because other tests do so.
func readLogoutToken(text string) (token LogoutToken, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return token, errors.New("the request has no logout token")
	}

	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(raw, &token)
	}
	if err == nil && time.Now().Unix() >= token.Expires {
		err = errors.New("the token has expired")
	}
	return token, err
}

// Answer sets the status of all later responses.
func (h *Hangup) Answer(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = status
}

// Told returns the logout tokens received so far, in order. It ends the test if a request had no
// token or an expired token.
func (h *Hangup) Told(t T) []LogoutToken {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault != nil {
		t.Fatalf("receiving logouts: %v", h.fault)
	}
	return slices.Clone(h.received)
}

// SessionOf returns the sid claim of the ID token.
func (s Tokens) SessionOf(t T) string {
	t.Helper()
	token, err := readLogoutToken(s.IDToken) // an ID token has these claims too
	if err != nil || token.SessionID == "" {
		t.Fatalf("the ID token has no sid: %v", err)
	}
	return token.SessionID
}
