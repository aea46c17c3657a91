package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// An sdk is an unmodified version of the stock browser SDK, loaded in a page or in Node.
// Expressions that eval evaluates there may use the functions of page/sdk.js.
type sdk struct {
	*testing.T
	version string
	eval    func(t *testing.T, expression string, value any)
	reload  func(t *testing.T)
}

// outcomeOf is the outcome of a promise.
type outcomeOf struct {
	Value json.RawMessage `json:"value"`
	Error *struct {
		Code          int
		Name, Message string
	} `json:"error"`
	Hangs string `json:"hangs"` // what the promise waited for if it did not settle
}

// try returns the outcome of a promise.
func (s sdk) try(promise string) (o outcomeOf) {
	s.Helper()
	s.eval(s.T, "outcome("+promise+")", &o)
	return o
}

// do waits for a promise and decodes its value. If the promise is rejected or does not settle, do
// ends the test.
func (s sdk) do(promise string, value any) {
	s.Helper()
	o := s.try(promise)
	if o.Error != nil || o.Hangs != "" {
		s.Fatalf("%s: %s", promise, o)
	}
	if value == nil {
		return
	}
	if err := json.Unmarshal(o.Value, value); err != nil {
		s.Fatalf("%s returned %s: %v", promise, o.Value, err)
	}
}

func (o outcomeOf) String() string {
	switch {
	case o.Hangs != "":
		return "the promise does not settle: " + o.Hangs
	case o.Error != nil:
		return fmt.Sprintf("%s %d: %s", o.Error.Name, o.Error.Code, o.Error.Message)
	}
	return string(o.Value)
}

// wantError fails the test unless a promise is rejected with an error that has this name and code.
func (s sdk) wantError(promise, name string, code int) {
	s.Helper()
	if o := s.try(promise); o.Error == nil || o.Error.Name != name || o.Error.Code != code {
		s.Errorf("%s: %s, want %s %d", promise, o, name, code)
	}
}

// open creates a client with a token.
func (s sdk) open(token string) {
	s.Helper()
	s.do(fmt.Sprintf("open(%q)", token), nil)
}

// wantEvent waits for an event of the SDK's session.
func (s sdk) wantEvent(name string) {
	s.Helper()
	var events []string
	s.eval(s.T, fmt.Sprintf("seen(%q)", name), &events)
	for _, e := range events {
		if e == name {
			return
		}
	}
	s.Errorf("the SDK reported %q, want %q", events, name)
}

// inChromium loads a version of the SDK in a page, in a Chromium that trusts the server's
// certificate authority.
func inChromium(t *testing.T, s *harness.Server, version string) sdk {
	t.Helper()
	needNode(t)
	home := newHome(t)
	ca(t, s, home, "install", "--store", "chromium")
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServer(http.Dir("page")))
	mux.HandleFunc("GET /sdk-under-test.js", func(w http.ResponseWriter, r *http.Request) {
		script := "index.umd.js"
		if strings.HasPrefix(version, "4.") {
			script = "browser.umd.js"
		}
		http.ServeFile(w, r, filepath.Join("node_modules", "signalwire-"+version, "dist", script))
	})

	page := serveBeside(t, s.Issuer(), mux) + "/sdk.html"
	b := ownTab(t, chromedp.NoInheritEnv, chromedp.Env(plain(home)...),
		chromedp.Flag("use-fake-device-for-media-stream", true), chromedp.Flag("use-fake-ui-for-media-stream", true))
	app := b.sdk(version, page)
	app.reload(t)
	return app
}

// sdk returns a version of the SDK that a page loads. The caller must open the page with reload.
func (b tab) sdk(version, page string) sdk {
	return sdk{
		T:       b.T,
		version: version,
		eval: func(t *testing.T, expression string, value any) {
			t.Helper()
			text := eval[string](tab{t, b.ctx}, "(async () => JSON.stringify(await ("+expression+")))()")
			if err := json.Unmarshal([]byte(text), value); err != nil {
				t.Fatalf("%s returned %s: %v", expression, text, err)
			}
		},
		reload: func(t *testing.T) {
			t.Helper()
			tab{t, b.ctx}.do(goTo(page))
		},
	}
}

// inNode loads a version of the SDK in Node.
func inNode(t *testing.T, s *harness.Server, version string) sdk {
	t.Helper()
	needNode(t)
	var in io.WriteCloser
	var out *bufio.Reader
	reload := func(t *testing.T) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "node", "sdk-node.cjs", "signalwire-"+version)
		cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+filepath.Join(s.Data, "ca.pem"))
		var faults bytes.Buffer
		cmd.Stderr = &faults

		w, r := pipes(t, cmd)
		in, out = w, bufio.NewReader(r)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}

		timer := time.AfterFunc(chromiumDeadline, func() { _ = cmd.Process.Kill() })
		t.Cleanup(func() {
			timer.Stop()
			_ = cmd.Process.Kill() // open sockets would keep the script running
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("the script printed to stderr: %s", faults.String())
			}
		})
	}

	reload(t)
	return sdk{
		T:       t,
		version: version,
		eval: func(t *testing.T, expression string, value any) {
			t.Helper()
			if _, err := io.WriteString(in, expression+"\n"); err != nil {
				t.Fatalf("%s: %v", expression, err)
			}

			line, err := out.ReadBytes('\n')
			if err == nil {
				err = json.Unmarshal(line, value)
			}
			if err != nil {
				t.Fatalf("%s returned %s: %v", expression, line, err)
			}
		},
		reload: reload,
	}
}
