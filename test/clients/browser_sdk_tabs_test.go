package clients

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// TestBrowserSDKPopup shows that an app can sign in with a popup window, and that a blocked or
// closed window is an error.
func TestBrowserSDKPopup(t *testing.T) {
	harness.NotStorage(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	page, _ := browserApp(t, p)
	b := completeTab(t, chromedp.Flag("disable-popup-blocking", false))
	b.do(goTo(page))
	b.ready(page)
	b.wantCode("app.login({ popup: true })", "popup_blocked") // the call does not come from a click

	windows := chromedp.WaitNewTarget(b.ctx, func(*target.Info) bool { return true })
	b.do(chromedp.Click(chromedp.CSS("#popup")))
	<-windows
	b.leave("popup.close()")
	if o := eval[settled](b, "login"); o.Code != "popup_closed" {
		t.Errorf("the login in a window that was closed returned %+v, want popup_closed", o)
	}

	windows = chromedp.WaitNewTarget(b.ctx, func(*target.Info) bool { return true })
	b.do(chromedp.Click(chromedp.CSS("#popup")))
	popup := b.beside(chromedp.WithTargetID(<-windows))
	popup.until("the login page", "document.querySelector('#login-submit')")
	popup.do(write("#username", sub.Email), write("#password", sub.Password))
	// A click through the DevTools protocol would not return before the window closes.
	popup.leave("document.querySelector('#login-submit').click()")
	if o := eval[settled](b, "login"); o.Code != "" {
		t.Errorf("the login in a window returned %+v, want no error", o)
	}
	if got := eval[string](b, "app.user?.sub ?? ''"); got != sub.ID {
		t.Errorf("after the login in a window, the user is %q, want %q", got, sub.ID)
	}
	b.until("the window to be closed", "popup.closed")
	if got := eval[string](b, "app.me().then((me) => me.email)"); got != sub.Email {
		t.Errorf("me returned the email %s, want %s", got, sub.Email)
	}
}

// TestBrowserSDKTabs shows what happens if two tabs have the same refresh token, for example
// because a tab was duplicated. The tabs share a single request to renew the token, and both stay
// signed in.
func TestBrowserSDKTabs(t *testing.T) {
	harness.NotStorage(t)
	for name, option := range map[string]string{"with locks": "", "without locks": "&nolocks"} {
		t.Run(name, func(t *testing.T) {
			p := harness.Shared(t).NewProject(t)
			sub := p.NewSubscriber(t)
			page, c := browserApp(t, p)
			one := ownTab(t)
			one.do(goTo(page + "?storage=session" + option))
			one.ready(page)
			one.logIn(page, sub)

			two := one.beside()
			two.do(goTo(page + "?storage=session" + option))
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
				// The first tab's request is held until the second tab has also asked for a token.
				one.leave("hold()")
				one.leave("window.fresh = outcome(app.getAccessToken({ fresh: true }))")
				one.until("the request of the first tab", fmt.Sprintf("tokenRequests() > %d", before[0]))
				two.leave("window.fresh = outcome(app.getAccessToken({ fresh: true }))")
				one.leave("release()")
				first, second := eval[settled](one, "fresh"), eval[settled](two, "fresh")
				if first.Value == nil {
					t.Fatalf("round %d: the first tab got %+v, want a token", round, first)
				}
				if string(first.Value) != string(second.Value) {
					t.Fatalf("round %d: the tabs got %+v and %+v, want the same token", round, first, second)
				}
				if got, want := requests(), [2]int{before[0] + 1, before[1]}; got != want {
					t.Errorf("round %d: the tabs have made %d requests, want %d", round, got, want)
				}
			}

			for _, b := range []tab{one, two} {
				if got := eval[string](b, "app.me().then((me) => me.email)"); got != sub.Email {
					t.Errorf("after all rounds, me returned the email %s, want %s", got, sub.Email)
				}
			}
			one.leave("app.logout()")
			two.until("the other tab to notice the logout", "!app.isSignedIn && events.includes('signedout')")
		})
	}
}
