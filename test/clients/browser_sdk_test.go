package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// A settled is the outcome of a promise in the app: its value or its error.
type settled struct {
	Value               json.RawMessage
	Code, Hint, Message string
	Name                string
	Status              int
}

// browserApp serves an app that uses our SDK as a client of project p. It returns the URL of the
// app's page and the client.
func browserApp(t *testing.T, p *harness.Project, flags ...string) (page string, c *harness.Client) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServer(http.Dir("page")))
	origin := serveBeside(t, p.Issuer(), mux)
	page = origin + "/browser.html"
	flags = append(flags, "--first-party", "--redirect-uri", page, "--post-logout-redirect-uri", page)
	c = p.NewClient(t, "spa", flags...)

	mux.HandleFunc("GET /settings.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer":     p.Issuer(),
			"client_id":  c.ID,
			"project_id": p.ID,
		})
	})

	// The SDK comes from the server, with the server's Content-Type.
	mux.HandleFunc("GET /sdk.js", func(w http.ResponseWriter, r *http.Request) {
		script := p.Get(t, "/sdk/selvage.js").Want(t, 200)
		w.Header().Set("Content-Type", script.Header.Get("Content-Type"))
		_, _ = w.Write(script.Body)
	})
	return page, c
}

// outcome returns the outcome of a promise in the app.
func (b tab) outcome(promise string) settled {
	b.Helper()
	return eval[settled](b, "outcome("+promise+")")
}

// ready waits until the app has started and handled the URL of its page.
func (b tab) ready(page string) {
	b.Helper()
	b.until("the app to start", fmt.Sprintf("location.href.startsWith(%q) && window.finished", page))
}

// logIn signs in by redirect and checks the state of the app.
func (b tab) logIn(page string, s harness.Subscriber) {
	b.Helper()
	b.leave("app.login({ appState: { at: 7 } })")
	b.until("the login page", "document.querySelector('#login-submit')")
	b.signIn(originOf(page), s.Email, s.Password)
	b.ready(page)
	for _, fact := range []string{
		"finished.value === true", "app.isSignedIn", "app.appState.at === 7", "location.search === ''",
	} {
		if !eval[bool](b, fact) {
			b.Fatalf("after the login, %s is false: %+v", fact, eval[settled](b, "finished"))
		}
	}
}

// originOf returns the origin of the URL that browserApp returned.
func originOf(page string) string { return strings.TrimSuffix(page, "/browser.html") }

// wantSilentLogin tries to log in without interaction, and checks that the result is want: true or
// false.
func (b tab) wantSilentLogin(when, want string) {
	b.Helper()
	if o := b.outcome("app.loginSilently()"); string(o.Value) != want {
		b.Errorf("a silent login %s returned %+v, want %s", when, o, want)
	}
}

// logOut signs out, and waits until the app has returned to its page.
func (b tab) logOut() {
	b.Helper()
	b.leave("window.old = true, app.logout()") // the app signs out before it leaves the page
	b.until("the app, signed out", "!window.old && window.finished && !app.isSignedIn")
}

// TestBrowserSDK shows that our SDK signs in, renews tokens, lists addresses and signs out.
func TestBrowserSDK(t *testing.T) {
	harness.NotStorage(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	page, _ := browserApp(t, p)
	b := newTab(t)
	b.do(goTo(page))
	b.ready(page)
	if eval[bool](b, "app.isSignedIn || finished.value") {
		t.Fatal("the app reports a user before any login")
	}

	b.wantCode("app.getAccessToken()", "not_signed_in")
	b.wantSilentLogin("before any other login", "false")

	b.logIn(page, sub)
	b.wantUser(sub)
	b.wantAddresses(p)

	// A reload deletes the app's memory, but the browser is still signed in.
	b.do(chromedp.Reload())
	b.ready(page)
	b.wantSilentLogin("after a reload", "true")
	b.wantUser(sub)

	// Concurrent requests for a token in the app share one request to the server.
	before := eval[int](b, "tokenRequests()")
	old := eval[string](b, "app.getAccessToken()")
	fresh := eval[[3]string](b, "Promise.all([1, 2, 3].map(() => app.getAccessToken({ fresh: true })))")
	if fresh[0] == old {
		t.Error("three calls for a fresh token returned the old one, want a new one")
	}
	if fresh[1] != fresh[0] || fresh[2] != fresh[0] {
		t.Errorf("three concurrent calls for a fresh token returned %q, want the same token for each", fresh)
	}
	if got := eval[int](b, "tokenRequests()") - before; got != 1 {
		t.Errorf("three concurrent calls for a fresh token made %d requests, want 1", got)
	}
	p.Get(t, "/subscriber/info", harness.Bearer(fresh[0])).Want(t, 200)

	b.logOut()
	harness.WithinASecond(t, "the token of an ended login", func() error {
		return p.Get(t, "/subscriber/info", harness.Bearer(fresh[0])).StatusIs(401)
	})
	b.wantSilentLogin("after the logout", "false")

	// Two people are signed in and one of them signs out. The app must not silently use the other
	// account, because nobody has chosen it.
	b.logIn(page, sub)
	other := p.NewSubscriber(t)
	b.leave("app.login({ prompt: 'login' })")
	b.until("the login page", "document.querySelector('#login-submit')")
	b.signIn(originOf(page), other.Email, other.Password)
	b.ready(page)
	b.logOut()
	b.wantSilentLogin("that needs a choice of account", "false")
}

// wantUser checks that the subscriber is signed in to the app.
func (b tab) wantUser(sub harness.Subscriber) {
	b.Helper()
	if got := eval[string](b, "app.user.sub"); got != sub.ID {
		b.Errorf("the user is %s, want %s", got, sub.ID)
	}
	for _, method := range []string{"me", "userInfo"} {
		if got := eval[string](b, fmt.Sprintf("app.%s().then((info) => info.email)", method)); got != sub.Email {
			b.Errorf("%s returned the email %s, want %s", method, got, sub.Email)
		}
	}
}

// wantAddresses lists addresses one by one and page by page, and requests a guest token for one of
// them.
func (b tab) wantAddresses(p *harness.Project) {
	b.Helper()
	p.NewSubscriber(b)
	p.NewSubscriber(b)
	names := eval[[]string](b, `(async () => {
		const names = []
		for await (const a of app.addresses.list({ pageSize: 1, sortBy: 'name' })) names.push(a.name)
		return names
	})()`)
	if len(names) != 3 || !slices.IsSorted(names) {
		b.Errorf("the names of the addresses are %q, want three sorted names", names)
	}

	sizes := eval[[]int](b, `(async () => {
		const sizes = []
		for await (const page of app.addresses.list({ pageSize: 2 }).pages()) sizes.push(page.length)
		return sizes
	})()`)
	if !slices.Equal(sizes, []int{2, 1}) {
		b.Errorf("the pages have %d addresses, want 2 and 1", sizes)
	}

	guest := eval[string](b, "app.me().then((me) => app.guestToken([me.fabric_addresses[0].id])).then((g) => g.token)")
	var reached struct{ Data []json.RawMessage }
	p.Get(b, "/api/fabric/addresses", harness.Bearer(guest)).Want(b, 200).Read(b, &reached)
	if len(reached.Data) != 1 {
		b.Errorf("the guest reached %d addresses, want 1", len(reached.Data))
	}
}

// wantCode fails the test unless the promise is rejected with a SelvageError that has this code and
// a hint.
func (b tab) wantCode(promise, code string) settled {
	b.Helper()
	o := b.outcome(promise)
	if o.Name != "SelvageError" {
		b.Errorf("%s: the outcome is %+v, want a SelvageError", promise, o)
	}
	if o.Code != code {
		b.Errorf("%s: the error has the code %q, want %q", promise, o.Code, code)
	}
	if o.Hint == "" {
		b.Errorf("%s: the error %s has no hint", promise, o.Code)
	}
	return o
}

// TestBrowserSDKErrors shows that, for each kind of failure, the app gets an error with the
// documented code.
func TestBrowserSDKErrors(t *testing.T) {
	harness.NotStorage(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	page, _ := browserApp(t, p)
	b := newTab(t)
	b.do(goTo(page + "?code=forged&state=r.forged&iss=" + p.Issuer()))
	b.ready(page)

	if o := eval[settled](b, "finished"); o.Code != "callback_failed" {
		t.Errorf("the app handled an unexpected response with %+v, want callback_failed", o)
	}
	if got := eval[string](b, "location.search"); got != "" {
		t.Errorf("after an unexpected response, the page has the query %q, want none", got)
	}

	b.logIn(page, sub)
	b.wantCode("Promise.resolve().then(() => Selvage.createClient({}))", "bad_config")
	b.wantCode("Selvage.Fabric({})", "bad_config")
	b.wantCode("Selvage.Fabric({ token: 'opaque' })", "bad_token")
	b.wantCode("Selvage.Fabric({ token: 'opaque', host: 'localhost:8443' })", "bad_config")
	b.wantCode("Selvage.Fabric({ token: 'opaque', host: settings.issuer }).then((f) => f.getSubscriberInfo())",
		"unauthorized")
	b.wantCode("Selvage.Fabric({ token: 'opaque', host: 'http://127.0.0.1:1' }).then((f) => f.getSubscriberInfo())",
		"network")
	b.wantCode("app.addresses.get('00000000-0000-4000-8000-000000000000')", "not_found")
	b.wantCode("app.recordings.list().all()", "unauthorized") // the client lacks the scope Voice

	if o := b.wantCode("app.guestToken([])", "invalid"); o.Status != 422 {
		t.Errorf("a guest without addresses: status %d, want 422", o.Status)
	}
	b.wantCode("Selvage.createClient("+
		"{ issuer: settings.issuer, clientId: 'x', redirectUri: location.href }).loginSilently()",
		"callback_failed")
	b.wantCode("Selvage.createClient({ issuer: location.origin, clientId: 'x' }).login()", "not_found")

	p.Command(t, "", "subscriber", "revoke", sub.ID)
	b.wantCode("app.getAccessToken({ fresh: true })", "session_ended")
	if eval[bool](b, "app.isSignedIn") {
		t.Error("the app is still signed in after the login has ended")
	}
	if !eval[bool](b, "events.includes('signedout')") {
		t.Error("the app got no event \"signedout\" when the login ended")
	}
}

// TestBrowserSDKFabric shows that our SDK can use the fabric at the fabric's own host, and can
// fetch the subscriber's recordings. It uses HTTPS with a certificate that the browser trusts.
func TestBrowserSDKFabric(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Shared(t)
	home := newHome(t)
	ca(t, s, home, "install", "--store", "chromium")
	p := s.NewProject(t)
	sub := p.NewSubscriber(t)
	page, _ := browserApp(t, p, "--scope", "openid", "--scope", "offline_access", "--scope", "Voice")

	speech := harness.Speech(t)
	p.CLI(t, "", "recording", "import", "--project", p.ID, "--subscriber", sub.ID, speech)

	b := ownTab(t, chromedp.NoInheritEnv, chromedp.Env(plain(home)...))
	b.do(goTo(page))
	b.ready(page)
	eval[string](b, "(app.options.scope = 'openid offline_access Voice', '')")
	b.leave("app.login()")
	b.until("the login page", "document.querySelector('#login-submit')")
	b.signIn(originOf(page), sub.Email, sub.Password)
	b.ready(page)

	got := eval[[]string](b, `(async () => {
		const { token, host } = await app.subscriberToken()
		const fabric = await Selvage.Fabric({ token })
		const device = await fabric.devices.register('Desktop', 'abc123')
		await fabric.devices.unregister(device.id)
		const me = await fabric.getSubscriberInfo()
		const invite = await fabric.inviteToken(me.fabric_addresses[0].id)
		const options = await app.signalwireOptions()
		return [fabric.base, me.email, typeof invite.token,
			String(options.host === host && options.token === token), String(await options.onRefreshToken() !== token)]
	})()`)
	host := strings.TrimSuffix(overHTTPS(t, s, "fabric.localhost"), "/")
	if want := []string{host, sub.Email, "string", "true", "true"}; !slices.Equal(got, want) {
		t.Errorf("the fabric at its host returned %v, want %v", got, want)
	}

	tooMany := b.wantCode("app.recordings.list({ pageSize: 1_000_000 }).all()", "invalid")
	if !strings.Contains(tooMany.Message, "page_size") {
		t.Errorf("a page that is too large: the message is %q, want page_size in it", tooMany.Message)
	}

	recording := eval[struct{ Bytes, Seconds, MP3Seconds float64 }](b, `(async () => {
		const [r] = await app.recordings.list().all()
		const blob = await app.recordings.get(r.id).blob('wav')
		const loaded = await app.recordings.get(r.id).load()
		const audio = new Audio(app.recordings.get(r.id).url('mp3'))
		await new Promise((ok, no) => {
			audio.onloadedmetadata = ok
			audio.onerror = () => no(new Error(audio.error.message))
		})
		return { Bytes: blob.size, Seconds: loaded.info.duration_in_seconds, MP3Seconds: audio.duration }
	})()`)
	file, err := os.Stat(speech)
	if err != nil {
		t.Fatal(err)
	}
	if recording.Bytes != float64(file.Size()) {
		t.Errorf("the recording has %.0f bytes, want %d", recording.Bytes, file.Size())
	}
	if recording.Seconds < 1 {
		t.Errorf("the recording lasts %.3f s, want at least 1 s", recording.Seconds)
	}
	if least := recording.Seconds - 1; recording.MP3Seconds < least {
		t.Errorf("the MP3 lasts %.3f s, want at least %.3f s", recording.MP3Seconds, least)
	}
}
