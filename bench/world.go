package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A world is a project on a running server, with the data that the operations need.
type world struct {
	*harness.Project
	sub     harness.Subscriber
	login   *harness.Client // public first-party client with sealed access tokens (ID tokens use ES256)
	sealed  *harness.Client // service with sealed access tokens
	signed  *harness.Client // service with JWT access tokens (ES256)
	web     *harness.Client // confidential client for introspection
	cookies string          // cookies of a signed-in browser
	tokens  harness.Tokens  // tokens of the client web
	jwt     harness.Tokens  // tokens of a client whose access tokens are JWTs (ES256)
	sat     harness.SAT
	address string
	speech  []byte       // ten-minute recording
	media   string       // path of the recording
	uploads atomic.Int64 // number of uploads so far
}

// loginScope is the scope that the flows request.
const loginScope = "openid offline_access"

// newWorld starts a server with new data. It runs binary or, if that is "", the binary under test.
// backends are environment variables that select the database and the session store. If there are
// none, the variables of the benchmark itself select them.
func newWorld(p *harness.Program, pinned bool, binary string, backends ...string) *world {
	c := harness.Config{Prefix: serverPrefix(pinned), Env: []string{procs}, Binary: binary, Backends: backends}
	if binary != "" {
		c.Data = filepath.Join(p.TempDir(), "data")
	}
	s := harness.StartConfig(p, c)
	w := &world{Project: s.NewProject(p)}
	w.sub = w.NewSubscriber(p)
	w.login = w.NewClient(p, "spa", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	w.web = w.NewClient(p, "web", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	w.sealed = w.NewClient(p, "service", "--access-token", "fabric", "--scope", "Voice")
	w.signed = w.NewClient(p, "service", "--access-token", "jwt", "--scope", "Voice")

	var b *harness.Browser
	w.tokens, b = w.web.SignIn(p, w.sub, loginScope)
	w.jwt, _ = w.NewClient(p, "web", "--first-party", "--id-token-alg", "ES256", "--access-token",
		"jwt").SignIn(p, w.sub, loginScope)
	w.cookies = cookieHeader(p, b, w.Issuer())
	w.sat = w.NewSAT(p, "bench")
	w.address = w.Address(p, w.sat.SubscriberID)
	w.speech = speechOf(p, 600)
	w.media = w.LaML("/Recordings/" + w.Upload(p, w.speech) + ".wav")
	return w
}

// cookieHeader returns the Cookie header that a browser sends to the server.
func cookieHeader(p *harness.Program, b *harness.Browser, origin string) string {
	req, err := http.NewRequest(http.MethodGet, origin, nil)
	if err != nil {
		p.Fatalf("%v", err)
	}
	b.Cookies()(req)
	return req.Header.Get("Cookie")
}

// startTime restarts the server repeat times with its existing data. It returns the median of the
// milliseconds until the first correct response.
func (w *world) startTime(p *harness.Program, repeat int) float64 {
	var took []float64
	for range repeat {
		if err := w.Stop(p); err != nil {
			p.Fatalf("stopping the server: %v", err)
		}
		began := time.Now()
		w.Restart(p)
		w.Get(p, "/oauth/jwks").Want(p, 200)
		took = append(took, milliseconds(time.Since(began)))
	}
	slices.Sort(took)
	return took[len(took)/2]
}
