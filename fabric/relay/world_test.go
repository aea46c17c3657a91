package relay_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/revocation"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// deadline is the maximum time that these tests wait for anything.
const deadline = time.Minute

// A world holds the stores that nodes share and a clock that tests set.
type world struct {
	t        *testing.T
	rows     *store.Store
	sessions *sessionsql.Store
	ring     *keys.Ring
	project  fabric.Project
	ahead    atomic.Int64
}

// A node is a relay and its dependencies.
type node struct {
	*world
	fabric  *fabric.Fabric
	revoked *revocation.List
	relay   *relay.Relay
	url     string
	ends    context.CancelFunc // stops the background work
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// embedLimit is how many sockets per minute an embed key may open in these tests.
const embedLimit = 3

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	dir := storetest.Dir(t)
	w := &world{t: t, rows: storetest.Open(t, dir, nil)}
	w.sessions = must[*sessionsql.Store](t)(sessionsql.Open(t.Context(), sessionsql.Config{Dir: dir}))
	t.Cleanup(func() { _ = w.sessions.Close() })
	w.ring = storetest.Ring(t, dir, w.rows, nil)
	return w
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// node starts a node and stops it when the test ends. The time limits that are not in limits are so
// long that they never expire during the test.
func (w *world) node(limits relay.Limits) *node {
	w.t.Helper()
	limits.Authenticate, limits.Silence = cmp.Or(limits.Authenticate, deadline), cmp.Or(limits.Silence, 2*deadline)
	n := &node{world: w, revoked: revocation.New(w.rows, w.now)}
	if err := n.revoked.Sync(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}

	n.fabric = fabric.New(fabric.Config{
		Stores: w.rows.Fabric(), Ring: w.ring, Revocations: n.revoked, Sessions: w.sessions, Host: "puc.localhost",
		Issuer: "http://localhost/", Now: w.now,
		EmbedLimits: fabric.EmbedLimits{Sockets: embedLimit},
	})

	if w.project.ID == "" {
		w.project = must[fabric.Project](w.t)(n.fabric.Projects.Create(w.t.Context(), "one"))
	}

	proofs := dpop.New(dpop.Config{Sessions: w.sessions, Key: w.ring.Derive, Now: w.now})
	n.relay = relay.New(relay.Config{Fabric: n.fabric, Limits: limits, Confirm: proofs.ConfirmRPC,
		Log: slog.New(slog.DiscardHandler)})
	srv := httptest.NewServer(web.Outer(n.relay, slog.New(slog.DiscardHandler), nil))
	n.url = "ws" + strings.TrimPrefix(srv.URL, "http")
	ctx, cancel := context.WithCancel(context.Background())
	n.ends = cancel
	stopped := make(chan struct{})
	go n.revoked.Run(ctx)
	go func() {
		defer close(stopped)
		n.relay.Run(ctx)
	}()

	w.t.Cleanup(func() {
		soon, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		n.relay.Shutdown(soon)
		cancel()
		<-stopped
		srv.Close()
	})

	return n
}

// token returns a subscriber's SAT after change has modified it.
func (w *world) token(change func(*fabric.Token)) fabric.Token {
	t := fabric.Token{
		Kind: fabric.SAT, ID: uuidOf("7"), ProjectID: w.project.ID, SubscriberID: uuidOf("5"), ClientID: uuidOf("c"),
		ExpiresAt: w.now().Add(time.Hour).Truncate(time.Second),
	}
	if change != nil {
		change(&t)
	}
	return t
}

// uuidOf returns a UUID in which all digits are the given one.
func uuidOf(digit string) string {
	return strings.Join([]string{strings.Repeat(digit, 8), strings.Repeat(digit, 4), strings.Repeat(digit, 4),
		strings.Repeat(digit, 4), strings.Repeat(digit, 12)}, "-")
}

func (n *node) seal(change func(*fabric.Token)) string {
	n.t.Helper()
	return must[string](n.t)(n.fabric.Tokens.Seal(n.token(change)))
}

// A client is the client's side of a socket. It answers pings unless deaf is set.
type client struct {
	t         *testing.T
	conn      *websocket.Conn
	deaf      bool
	next      int
	requested []frame // requests received from the server
}

// A frame is a message in either direction.
type frame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// dial opens a socket in the same way as a page of another site.
func (n *node) dial() *client {
	n.t.Helper()
	c, status := n.tryDial()
	if c == nil {
		n.t.Fatalf("opening a socket returned %d", status)
	}
	return c
}

func (n *node) tryDial() (*client, int) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), deadline)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, n.url+"/",
		&websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://app.example"}}})
	if err != nil {
		if resp == nil {
			n.t.Fatal(err)
		}
		return nil, resp.StatusCode
	}
	conn.SetReadLimit(1 << 20)
	n.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: n.t, conn: conn}, resp.StatusCode
}

// connect opens a socket and authenticates.
func (n *node) connect(token string, more ...string) (*client, connected) {
	n.t.Helper()
	c := n.dial()
	return c, c.connect(token, more...)
}

// connected is the result of signalwire.connect and signalwire.reauthenticate.
type connected struct {
	Identity      string `json:"identity"`
	Protocol      string `json:"protocol"`
	Authorization struct {
		JTI        string `json:"jti"`
		ProjectID  string `json:"project_id"`
		Subscriber struct {
			Version       int    `json:"version"`
			SubscriberID  string `json:"subscriber_id"`
			ApplicationID string `json:"application_id"`
			ProjectID     string `json:"project_id"`
			SpaceID       string `json:"space_id"`
			ExpiresAt     int64  `json:"expires_at"`
		} `json:"fabric_subscriber"`
	} `json:"authorization"`
	ICEServers []any `json:"ice_servers"`
}

// authentication returns the parameters of signalwire.connect without the closing brace, so
// that a test can append more.
func authentication(token string) string {
	return fmt.Sprintf(`{"version":{"major":4,"minor":0,"revision":0},"event_acks":true,`+
		`"agent":"@signalwire/js/browser/3.30.0","authentication":{"jwt_token":%q}`, token)
}

func (c *client) connect(token string, more ...string) (r connected) {
	c.t.Helper()
	c.call("signalwire.connect", authentication(token)+strings.Join(more, "")+"}").into(c.t, &r)
	return r
}

func (f frame) into(t *testing.T, v any) {
	t.Helper()
	if f.Error != nil {
		t.Fatalf("got the error %d %q", f.Error.Code, f.Error.Message)
	}
	if err := json.Unmarshal(f.Result, v); err != nil {
		t.Fatalf("reading %s: %v", f.Result, err)
	}
}

// code returns the code of an error, or 0 for a result.
func (f frame) code() int {
	if f.Error == nil {
		return 0
	}
	return f.Error.Code
}

// call sends a request and returns the response.
func (c *client) call(method, params string) frame {
	c.t.Helper()
	c.next++
	id := fmt.Sprintf(`"%d"`, c.next)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return c.until("an answer to "+method, func(f frame) bool { return string(f.ID) == id && f.Method == "" })
}

func (c *client) send(text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), deadline)
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatalf("sending %.80s: %v", text, err)
	}
}

// until reads messages until wanted returns true, and returns that message.
func (c *client) until(what string, wanted func(frame) bool) frame {
	c.t.Helper()
	for {
		f, err := c.read()
		if err != nil {
			c.t.Fatalf("waiting for %s: %v", what, err)
		}
		if wanted(f) {
			return f
		}
	}
}

func (c *client) read() (f frame, err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), deadline)
	defer cancel()
	_, text, err := c.conn.Read(ctx)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil || f.Version != "2.0" {
		c.t.Fatalf("the server sent %.200s, want JSON-RPC 2.0", text)
	}
	if f.Method == "" || c.deaf {
		return f, nil
	}

	c.requested = append(c.requested, f)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, f.ID))
	return f, nil
}

// closed reads until the server closes the socket, and returns the code and the reason.
func (c *client) closed() (code int, reason string) {
	c.t.Helper()
	for {
		_, err := c.read()
		var closed websocket.CloseError
		switch {
		case err == nil:
		case errors.As(err, &closed):
			return int(closed.Code), closed.Reason
		default:
			return -1, err.Error()
		}
	}
}

// wasTold reports whether the server has sent a request for method.
func (c *client) wasTold(method string) bool {
	for _, f := range c.requested {
		if f.Method == method {
			return true
		}
	}
	return false
}

// eventually waits until ready returns true.
func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(deadline); !ready(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", deadline, what)
		}
	}
}
