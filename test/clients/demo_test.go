package clients

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// demoLogin reads the demo's subscriber from the file that the first start wrote.
func demoLogin(t *testing.T, s *harness.Server) harness.Subscriber {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Data, "first-run.txt"))
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) string {
		m := regexp.MustCompile(name + ` +(\S+)`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("first-run.txt has no %s", name)
		}
		return string(m[1])
	}
	return harness.Subscriber{Email: find("email"), Password: find("password")}
}

// step runs a step of the demo and waits until it is marked as done.
func (b tab) step(id string) {
	b.Helper()
	b.until("the button of "+id, fmt.Sprintf("document.querySelector('#%s-run')?.disabled === false", id))
	b.leave(fmt.Sprintf("document.querySelector('#%s-run').click()", id))
	b.waitDone(id)
}

// waitDone waits until a step is marked as done.
func (b tab) waitDone(id string) {
	b.Helper()
	b.until(id+" to be done", fmt.Sprintf("document.querySelector('#step-%s')?.matches('.done')", id))
}

// output returns the output that the page shows for a step.
func (b tab) output(id string) string {
	b.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector('#step-%s .out').textContent", id))
}

// wantOutput checks that the output of a step matches a regular expression.
func (b tab) wantOutput(id, what string) {
	b.Helper()
	if got := b.output(id); !regexp.MustCompile(what).MatchString(got) {
		b.Errorf("step %s shows %q, want a match of %s", id, got, what)
	}
}

// TestDemo shows that the demo's seven steps, and its steps with the stock SDK, work in a new
// browser. The certificate step fails until `selvage ca install` has installed the local CA.
func TestDemo(t *testing.T) {
	harness.NotStorage(t)
	needNode(t)
	s := harness.Start(t, "--no-demo=false", "--demo-sdk", stockScript(t))
	sub, home := demoLogin(t, s), newHome(t)
	page := s.PublicURL + "/demo"

	t.Run("not trusted", func(t *testing.T) {
		b := completeTab(t, chromedp.NoInheritEnv, chromedp.Env(plain(home)...))
		b.do(goTo(page))
		b.chooseStock()
		b.do(chromedp.Click(chromedp.CSS("#certificate-run")))
		b.until("what to do",
			"document.querySelector('#step-certificate .error')?.textContent.includes('selvage ca install')")
		b.until("the next step to wait", "document.querySelector('#connect-run').disabled")
		b.picture("demo-untrusted")
	})

	ca(t, s, home, "install", "--store", "chromium")
	b := completeTab(t, chromedp.NoInheritEnv, chromedp.Env(plain(home)...),
		chromedp.Flag("use-fake-device-for-media-stream", true), chromedp.Flag("use-fake-ui-for-media-stream", true))
	b.do(goTo(page))
	b.picture("demo-begin")

	b.until("the button", "document.querySelector('#signin-run')?.disabled === false")
	b.leave("document.querySelector('#signin-run').click()")
	b.until("the login page", "document.querySelector('#login-submit')")
	b.do(write("#username", sub.Email), write("#password", sub.Password))
	b.leave("document.querySelector('#login-submit').click()")
	b.waitDone("signin")
	b.wantOutput("signin", `POST .*/oauth/token(?s:.*)grant_type=authorization_code(?s:.*)code_verifier=`)

	for _, step := range []struct{ id, says string }{
		{"claims", `"sub": "[0-9a-f-]{36}"`},
		{"info", `/api/fabric/subscriber/info(?s:.*)200(?s:.*)"email": "` + regexp.QuoteMeta(sub.Email)},
		{"addresses", `"channels": `},
		{"guest", `POST .*/api/fabric/guests/tokens(?s:.*)201`},
		{"recording", `"duration_in_seconds": [1-9]`},
	} {
		b.step(step.id)
		b.wantOutput(step.id, step.says)
	}

	b.sendChat("hello from Ada")
	b.until("the recording to be ready", "document.querySelector('audio')?.duration > 1")
	guest := eval[string](b, "document.querySelector('#step-guest a').href")
	b.picture("demo-done")

	b.leave("document.querySelector('#source summary').click()")
	b.until("the source",
		"document.querySelector('#source pre')?.offsetHeight > 0 && "+
			"document.querySelector('#source pre').textContent.includes('Selvage.createClient(')")
	b.runStock()

	b.do(goTo("about:blank"), goTo(guest))
	b.until("the guest's addresses", `document.querySelector('#guest-addresses')?.textContent.includes('"channels"')`)
	if eval[string](b, "location.href") != page {
		t.Error("the guest's token is still in the address bar")
	}
	b.sendChat("hello from a guest")
	b.picture("demo-guest")

	b.do(goTo(page))
	b.waitDone("signin") // the browser is still signed in
	b.waitGuest("hello from a guest")
	b.leave("(window.before = true, document.querySelector('#signout-run').click())")
	b.until("the page to be back", "!window.before && document.querySelector('#step-signout')?.matches('.done')")
	if eval[bool](b, "app.isSignedIn || document.querySelector('#step-signin').matches('.done')") {
		t.Error("after signing out, somebody is still signed in")
	}
}

// sendChat sends a message in the chat of the demo, and waits until it is shown.
func (b tab) sendChat(text string) {
	b.Helper()
	b.until("the chat", "document.querySelector('#chat')?.hidden === false")
	b.do(write("#chat-text", text))
	b.leave("document.querySelector('#chat-send').click()")
	b.until("the message to be shown", fmt.Sprintf(
		"[...document.querySelectorAll('#chat-log .mine p')].some((p) => p.textContent === %q)", text))
}

// waitGuest opens the conversation with the guest, and waits for the guest's message.
func (b tab) waitGuest(text string) {
	b.Helper()
	b.until("the guest", "[...document.querySelector('#chat-with').options].some((o) => o.text === 'Guest')")
	b.leave(`(() => {
		const list = document.querySelector('#chat-with')
		list.value = [...list.options].find((o) => o.text === 'Guest').value
		list.onchange()
	})()`)
	b.until("the guest's message", fmt.Sprintf(
		"[...document.querySelectorAll('#chat-log li:not(.mine) p')].some((p) => p.textContent === %q)", text))
	b.picture("demo-chat")
}

// chooseStock opens the demo's tab with the stock SDK.
func (b tab) chooseStock() {
	b.Helper()
	b.leave("document.querySelector('#tab-stock').click()")
}

// openStock opens the demo's tab with the stock SDK, and waits until the browser has loaded the SDK.
func (b tab) openStock() {
	b.Helper()
	b.chooseStock()
	b.until("the stock SDK", "window.SignalWire")
}

// runStock runs the demo's steps with the stock SDK.
func (b tab) runStock() {
	b.Helper()
	b.openStock()
	for _, step := range []struct{ id, says string }{
		{"certificate", `"trusted": "https://fabric\.localhost:\d+"`},
		{"connect", `"connected": "puc\.localhost:\d+"`},
		{"stock-info", `"email": "ada@example.com"`},
		{"stock-addresses", `"name": `},
		{"echo", `"state": "answered",\s+"media": \{\s+"transport": "(udp|tcp)",\s+"server": "127\.0\.0\.1:\d+"`},
		{"hangup", `"state": "ended"`},
		{"online", `true`},
	} {
		b.step(step.id)
		b.wantOutput(step.id, step.says)
	}

	b.callFromOtherTab()
	b.step("disconnect")
	b.wantOutput("disconnect", `null`)
	b.picture("demo-stock")
}

// callFromOtherTab calls the subscriber of this tab from a second tab. The subscriber must be
// online.
func (b tab) callFromOtherTab() {
	b.Helper()
	other := b.beside()
	other.do(goTo(eval[string](b, "location.href.split('#')[0]")))
	other.waitDone("signin") // the browser is signed in
	other.openStock()
	other.step("certificate")
	other.step("connect")
	other.leave("document.querySelector('#other-run').click()")
	b.step("answer")
	b.wantOutput("answer", `"state": "answered"`)
	other.waitDone("other")
	other.wantOutput("other", `"state": "answered"`)

	other.step("hangup")
	b.until("the call to be over", "document.querySelector('#hangup-run').disabled")
	other.step("disconnect")
}

// stockScript returns the path of the stock SDK's script, in the version that the demo uses.
func stockScript(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs("node_modules/signalwire-3.30.0/dist/index.umd.js")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestDemoSDKFromVendor shows that the demo loads the stock SDK from its vendor only when its tab
// is opened. The page must require the digest of the file in the npm package. If the script cannot
// be loaded, the demo explains what to do.
func TestDemoSDKFromVendor(t *testing.T) {
	harness.NotStorage(t)
	needNode(t)
	s := harness.Start(t, "--no-demo=false")
	policy := s.Get(t, "/demo").Want(t, 200).Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "script-src 'self' https://cdn.signalwire.com;") {
		t.Errorf("the page's Content-Security-Policy is %q, want it to allow the vendor's scripts", policy)
	}

	b := completeTab(t, chromedp.Flag("host-resolver-rules", "MAP cdn.signalwire.com ~NOTFOUND"))
	b.do(goTo(s.PublicURL + "/demo"))
	b.until("the page", "document.querySelector('#signin-run')?.disabled === false")
	const asked = "performance.getEntriesByType('resource').some((e) => e.name.includes('signalwire')) || " +
		"Boolean(document.querySelector('script[src*=signalwire]'))"
	if eval[bool](b, asked) {
		t.Error("the page loads the stock SDK before its tab is opened")
	}
	b.chooseStock()
	b.until("what to do", "document.querySelector('#stock-missing:not([hidden])')?.innerText.includes('--demo-sdk')")
	b.picture("demo-no-sdk")

	file, err := os.ReadFile(stockScript(t))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum384(file)
	want := "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
	if got := eval[string](b, "document.querySelector('#stock').dataset.integrity"); got != want {
		t.Errorf("the page requires the digest %s for the script, want %s as in the npm package", got, want)
	}
}

// TestDemoInFirefox shows that, if the server's media is on loopback, the demo in Firefox explains
// how to start the server differently. Otherwise, and in other browsers, the demo does not show
// this notice.
func TestDemoInFirefox(t *testing.T) {
	harness.NotStorage(t)
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"on loopback", nil, "--listen-media :8444"},
		{"elsewhere", []string{"--listen-media", "0.0.0.0:0"}, ""},
	} {
		s := harness.Start(t, append(tt.args, "--no-demo=false")...)
		for agent, want := range map[string]string{"": "", firefox: tt.want} {
			b := newTab(t)
			if agent != "" {
				b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
					_, err := cdp.Call(ctx, t, emulation.SetUserAgentOverride,
						emulation.SetUserAgentOverrideParams{UserAgent: agent})
					return err
				}))
			}
			b.do(goTo(s.PublicURL + "/demo"))
			b.chooseStock()

			got := eval[string](b, "document.querySelector('#firefox:not([hidden])')?.innerText || ''")
			if !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("media %s, user agent %q: the notice is %q, want %q", tt.name, agent, got, want)
			}
		}
	}
}

// TestDemoMoves shows that people can still sign in to the demo after the server has moved to
// another address, and that a server without demo data has no demo page.
func TestDemoMoves(t *testing.T) {
	harness.NotStorage(t)
	first := harness.Start(t, "--no-demo=false")
	sub := demoLogin(t, first)
	if err := first.Stop(t); err != nil {
		t.Fatal(err)
	}
	// Occupy the old port, so that the next server gets another one.
	if l, err := net.Listen("tcp", strings.TrimPrefix(first.PublicURL, "http://")); err == nil {
		defer l.Close()
	}
	s := harness.StartConfig(t, harness.Config{Data: first.Data, Beside: first, Args: []string{"--no-demo=false"}})
	if s.PublicURL == first.PublicURL {
		t.Fatalf("the server is at %s again, want another address", s.PublicURL)
	}

	b := newTab(t)
	b.do(goTo(s.PublicURL + "/demo"))
	b.until("the button", "document.querySelector('#signin-run')?.disabled === false")
	b.leave("document.querySelector('#signin-run').click()")
	b.signIn(s.PublicURL, sub.Email, sub.Password)
	b.waitDone("signin")

	harness.Start(t).Get(t, "/demo").Want(t, 404)
}
