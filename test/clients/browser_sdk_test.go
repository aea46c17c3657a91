package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// A came is the outcome of a promise in the app: its value or its error.
type came struct {
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
	c = p.NewClient(t, "spa", append([]string{"--first-party", "--redirect-uri", page,
		"--post-logout-redirect-uri", page}, flags...)...)

	mux.HandleFunc("GET /settings.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": p.Issuer(), "client_id": c.ID, "project_id": p.ID})
	})

	mux.HandleFunc("GET /sdk.js", func(w http.ResponseWriter, r *http.Request) { // like the server
		script := p.Get(t, "/sdk/selvage.js").Want(t, 200)
		w.Header().Set("Content-Type", script.Header.Get("Content-Type"))
		_, _ = w.Write(script.Body)
	})
	return page, c
}

// outcome returns the outcome of a promise in the app.
func (b tab) outcome(promise string) came {
	b.Helper()
	return eval[came](b, "outcome("+promise+")")
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
	if got := eval[bool](b,
		"finished.value === true && app.isSignedIn && app.appState.at === 7 && location.search === ''"); !got {
		b.Fatalf("the login failed: %+v", eval[came](b, "finished"))
	}
}

func originOf(page string) string { return page[:len(page)-len("/browser.html")] }

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
	if o := b.outcome("app.loginSilently()"); string(o.Value) != "false" {
		t.Errorf("a silent login before any other returned %+v, want false", o)
	}

	b.logIn(page, sub)
	if got := eval[string](b, "app.user.sub"); got != sub.ID {
		t.Errorf("the user is %s, want %s", got, sub.ID)
	}
	if got := eval[[]string](b,
		"Promise.all([app.me(), app.userInfo()]).then((all) => all.map((i) => i.email))"); !slices.Equal(
		got, []string{sub.Email, sub.Email}) {
		t.Errorf("me and userInfo return %v, want the email %s", got, sub.Email)
	}
	b.wantAddresses(p)

	// A reload deletes the app's memory, but the browser is still signed in.
	b.do(chromedp.Reload())
	b.ready(page)
	if o := b.outcome("app.loginSilently()"); string(o.Value) != "true" || eval[string](b, "app.user.sub") != sub.ID {
		t.Errorf("a silent login after a reload returned %+v, want true", o)
	}

	// Concurrent requests for a token in the app share one request to the server.
	before := eval[int](b, "tokenRequests()")
	tokens := eval[[]string](b, `app.getAccessToken().then(async (old) => [old, ...await Promise.all(
		[1, 2, 3].map(() => app.getAccessToken({ fresh: true })))])`)
	if tokens[0] == tokens[1] || tokens[1] != tokens[2] || tokens[1] != tokens[3] ||
		eval[int](b, "tokenRequests()") != before+1 {
		t.Errorf("four calls returned %d tokens in %d requests, want the old and a new one in one request",
			len(tokens), eval[int](b, "tokenRequests()")-before)
	}
	p.Get(t, "/subscriber/info", harness.Bearer(tokens[1])).Want(t, 200)

	b.leave("window.old = true, app.logout()") // the app signs out before it leaves the page
	b.until("the app, signed out", "!window.old && window.finished && !app.isSignedIn")
	harness.WithinASecond(t, "the token of an ended login", func() error {
		return p.Get(t, "/subscriber/info", harness.Bearer(tokens[1])).StatusIs(401)
	})
	if o := b.outcome("app.loginSilently()"); string(o.Value) != "false" {
		t.Errorf("a silent login after the logout returned %+v, want false", o)
	}

	// Two people are signed in and one of them signs out. The app must not silently use the other
	// account, because nobody has chosen it.
	b.logIn(page, sub)
	other := p.NewSubscriber(t)
	b.leave("app.login({ prompt: 'login' })")
	b.until("the login page", "document.querySelector('#login-submit')")
	b.signIn(originOf(page), other.Email, other.Password)
	b.ready(page)
	b.leave("window.old = true, app.logout()")
	b.until("the app, signed out", "!window.old && window.finished && !app.isSignedIn")
	if o := b.outcome("app.loginSilently()"); string(o.Value) != "false" {
		t.Errorf("a silent login that needs a choice of account returned %+v, want false", o)
	}
}

// wantAddresses lists addresses one by one and page by page, and requests a guest token for one of
// them.
func (b tab) wantAddresses(p *harness.Project) {
	b.Helper()
	p.NewSubscriber(b)
	p.NewSubscriber(b)
	names := eval[[]string](b, `(async () => {
		const names = [], pages = []
		for await (const a of app.addresses.list({ pageSize: 1, sortBy: 'name' })) names.push(a.name)
		for await (const page of app.addresses.list({ pageSize: 2 }).pages()) pages.push(page.length)
		return [...names, pages.join()]
	})()`)
	if len(names) != 4 || names[3] != "2,1" || !slices.IsSorted(names[:3]) {
		b.Errorf("the addresses are %v, want three by name, and pages of 2 and 1", names)
	}

	guest := eval[string](b, "app.me().then((me) => app.guestToken([me.fabric_addresses[0].id])).then((g) => g.token)")
	var found struct{ Data []json.RawMessage }
	p.Get(b, "/api/fabric/addresses", harness.Bearer(guest)).Want(b, 200).Read(b, &found)
	if len(found.Data) != 1 {
		b.Errorf("the guest reaches %d addresses, want one", len(found.Data))
	}
}

// wantCode fails the test unless the promise is rejected with our own error with that code. The
// error must have a hint.
func (b tab) wantCode(promise, code string) came {
	b.Helper()
	o := b.outcome(promise)
	if o.Name != "SelvageError" || o.Code != code || o.Hint == "" {
		b.Errorf("%s: %+v, want a SelvageError %s with a hint", promise, o, code)
	}
	return o
}

// TestBrowserSDKPopup shows that an app can sign in with a popup window, and that a blocked or
// closed window is an error.
func TestBrowserSDKPopup(t *testing.T) {
	harness.NotStorage(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	page, _ := browserApp(t, p)
	b := ownTab(t, chromedp.Flag("disable-popup-blocking", false))
	b.do(goTo(page))
	b.ready(page)
	b.wantCode("app.login({ popup: true })", "popup_blocked") // the call does not come from a click

	windows := chromedp.WaitNewTarget(b.ctx, func(*target.Info) bool { return true })
	b.do(chromedp.Click(chromedp.CSS("#popup")))
	<-windows
	b.leave("popup.close()")
	if o := eval[came](b, "login"); o.Code != "popup_closed" {
		t.Errorf("a closed window returned %+v, want popup_closed", o)
	}

	windows = chromedp.WaitNewTarget(b.ctx, func(*target.Info) bool { return true })
	b.do(chromedp.Click(chromedp.CSS("#popup")))
	in := b.beside(chromedp.WithTargetID(<-windows))
	in.until("the login page", "document.querySelector('#login-submit')")
	in.do(write("#username", sub.Email), write("#password", sub.Password))
	// A click through the DevTools protocol would not return before the window closes.
	in.leave("document.querySelector('#login-submit').click()")
	if o := eval[came](b, "login"); o.Code != "" || eval[string](b, "app.user?.sub ?? ''") != sub.ID {
		t.Errorf("the login in a window returned %+v, want a user", o)
	}
	b.until("the window to be closed", "popup.closed")
	if got := eval[string](b, "app.me().then((me) => me.email)"); got != sub.Email {
		t.Errorf("me returns %s, want %s", got, sub.Email)
	}
}

// TestBrowserSDKTabs shows what happens if two tabs have the same refresh token, for example
// because a tab was duplicated. The tabs renew the token with one request, and both stay signed in.
func TestBrowserSDKTabs(t *testing.T) {
	harness.NotStorage(t)
	for _, how := range []string{"", "&nolocks"} {
		t.Run("with"+how, func(t *testing.T) {
			p := harness.Shared(t).NewProject(t)
			sub := p.NewSubscriber(t)
			page, c := browserApp(t, p)
			one := ownTab(t)
			one.do(goTo(page + "?storage=session" + how))
			one.ready(page)
			one.logIn(page, sub)

			two := one.beside()
			two.do(goTo(page + "?storage=session" + how))
			two.ready(page)
			kept := eval[string](one, fmt.Sprintf("sessionStorage.getItem('selvage.%s')", c.ID))
			eval[string](two, fmt.Sprintf("(sessionStorage.setItem('selvage.%s', %q), '')", c.ID, kept))
			two.do(chromedp.Reload())
			two.ready(page)

			requests := func() [2]int {
				return [2]int{eval[int](one, "tokenRequests()"), eval[int](two, "tokenRequests()")}
			}
			for round := range 3 {
				before := requests()
				// The request of the first tab is held until the second tab has also begun.
				one.leave("hold()")
				one.leave("window.fresh = outcome(app.getAccessToken({ fresh: true }))")
				one.until("the request of the first tab", fmt.Sprintf("tokenRequests() > %d", before[0]))
				two.leave("window.fresh = outcome(app.getAccessToken({ fresh: true }))")
				one.leave("release()")
				first, second := eval[came](one, "fresh"), eval[came](two, "fresh")
				if first.Value == nil || string(first.Value) != string(second.Value) {
					t.Fatalf("round %d: the tabs got %+v and %+v, want the same token", round, first, second)
				}
				if got := requests(); got != [2]int{before[0] + 1, before[1]} {
					t.Errorf("round %d: the tabs made %d requests, %d before; want one more, by the first",
						round, got, before)
				}
			}

			for _, b := range []tab{one, two} {
				if got := eval[string](b, "app.me().then((me) => me.email)"); got != sub.Email {
					t.Errorf("after all rounds me returns %s, want %s", got, sub.Email)
				}
			}
			one.leave("app.logout()")
			two.until("the other tab to notice the logout", "!app.isSignedIn && events.includes('signedout')")
		})
	}
}

// TestBrowserSDKErrors shows that the app gets an error with the documented code for each kind of
// failure.
func TestBrowserSDKErrors(t *testing.T) {
	harness.NotStorage(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	page, _ := browserApp(t, p)
	b := newTab(t)
	b.do(goTo(page + "?code=forged&state=r.forged&iss=" + p.Issuer()))
	b.ready(page)

	if o := eval[came](b, "finished"); o.Code != "callback_failed" || eval[string](b, "location.search") != "" {
		t.Errorf("an unexpected response returned %+v, want callback_failed", o)
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
	if eval[bool](b, "app.isSignedIn || !events.includes('signedout')") {
		t.Error("the app does not know that the login has ended")
	}
}

// TestBrowserSDKFabric shows that our SDK can use the fabric at the fabric's own host, and the
// subscriber's recordings. It uses HTTPS that the browser trusts.
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
	if want := []string{
		overHTTPS(t, s, "fabric.localhost"), sub.Email, "string", "true", "true"}; got[0]+"/" != want[0] ||
		!slices.Equal(got[1:], want[1:]) {
		t.Errorf("the fabric at its host returned %v, want %v", got, want)
	}

	heard := eval[[]float64](b, `(async () => {
		const [r] = await app.recordings.list().all()
		const blob = await app.recordings.get(r.id).blob('wav')
		const loaded = await app.recordings.get(r.id).load()
		const audio = new Audio(app.recordings.get(r.id).url('mp3'))
		await new Promise((ok, no) => {
			audio.onloadedmetadata = ok
			audio.onerror = () => no(new Error(audio.error.message))
		})
		return [blob.size, loaded.info.duration_in_seconds, audio.duration]
	})()`)
	file, err := os.Stat(speech)
	if err != nil {
		t.Fatal(err)
	}
	if heard[0] != float64(file.Size()) || heard[1] < 1 || heard[2] < heard[1]-1 {
		t.Errorf("the recording has bytes, seconds, seconds as MP3 = %v, want %d bytes", heard, file.Size())
	}
}
