package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/operator"
)

// wantReasons reports each reason for refused logins whose number in the audit trail differs from
// the wanted one.
func (w *world) wantReasons(want map[string]int) {
	w.Helper()
	reasons := make(map[string]int)
	for _, e := range w.refusedLogins() {
		reasons[e.Detail["reason"]]++
	}
	for reason, n := range want {
		if reasons[reason] != n {
			w.Errorf("the audit trail has the reason %q %d times, want %d", reason, reasons[reason], n)
		}
	}
}

// TestPasskeyReplay shows that the answer to a challenge is valid only once, and only in the browser and
// on the page for which the challenge was made.
func TestPasskeyReplay(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	key := b.passkey()

	// Another browser sends the answer, with its own form token.
	first := w.browser()
	options, form := first.get(doorway).asked(t)
	used := key.Get([]byte(options))
	other := w.browser()
	_, theirs := other.get(doorway).asked(t)
	stolen := url.Values{"form": theirs["form"], "prompt": form["prompt"]}
	other.sendKey("/dashboard/login/passkey", stolen, used).wrongKey(t)

	// The right browser sends the answer twice.
	first.sendKey("/dashboard/login/passkey", form, used).leadsTo(t, "/dashboard")
	again := w.browser()
	again.client.Jar = first.client.Jar
	again.post("/dashboard/account", "/dashboard/logout", nil)
	_, next := again.get(doorway).asked(t)
	repeated := url.Values{"form": next["form"], "prompt": form["prompt"]}
	again.sendKey("/dashboard/login/passkey", repeated, used).wrongKey(t)

	// The answer to a sign-in challenge is not accepted as a second factor, because any operator may
	// answer such a challenge.
	half := w.browser()
	half.post(doorway, doorway, url.Values{"username": {"ann@example.com"}, "password": {good}})
	options, form = w.browser().get(doorway).asked(t)
	_, factor := half.get("/dashboard/factor").asked(t)
	asFactor := url.Values{"form": factor["form"], "prompt": form["prompt"]}
	half.sendKey("/dashboard/factor", asFactor, key.Get([]byte(options))).wrongKey(t)
	w.wantReasons(map[string]int{"passkey_stale": 3})
}

// TestWrongPasskeys shows that a passkey must belong to an enabled operator, and that the device must
// have verified its user for the right site.
func TestWrongPasskeys(t *testing.T) {
	w := newWorld(t)
	ann, a := w.operator("ann@example.com", ofAll)
	_, b := w.operator("bob@example.com", ofAll)
	anns, bobs := a.passkey(), b.passkey()

	otherSite := *anns
	otherSite.Origin = "https://evil.example"
	w.browser().show(&otherSite, doorway, "/dashboard/login/passkey").wrongKey(t)
	unverified := *anns
	unverified.Unverified = true
	w.browser().show(&unverified, doorway, "/dashboard/login/passkey").wrongKey(t)

	// Another operator's passkey is neither a second factor nor a confirmation.
	half := w.browser()
	half.post(doorway, doorway, url.Values{"username": {"ann@example.com"}, "password": {good}})
	half.show(bobs, "/dashboard/factor", "/dashboard/factor").wrongKey(t)
	half.get("/dashboard/account").leadsTo(t, "/dashboard/login?next=%2Fdashboard%2Faccount")
	w.pass(operator.Freshness)
	a.show(bobs, "/dashboard/confirm", "/dashboard/confirm").wrongKey(t)

	// A subscriber's passkey does not open the dashboard.
	email := "sub@example.com"
	sub, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	subs, owner := &factortest.Authenticator{Origin: w.named()}, idp.OwnerOf(sub.ID)
	begun, err := w.factors.BeginPasskey(t.Context(), owner, "flow", email, email)
	must(t, err)
	_, err = w.factors.CreatePasskey(t.Context(), owner, false, "flow", "", subs.Create(begun))
	must(t, err)
	w.browser().show(subs, doorway, "/dashboard/login/passkey").wrongKey(t)

	// The passkey of a disabled operator does not open the dashboard either.
	disabled := true
	_, err = w.operators.Update(t.Context(), ann.ID, operator.Input{Disabled: &disabled}, "")
	must(t, err)
	w.browser().show(anns, doorway, "/dashboard/login/passkey").wrongKey(t)
	w.wantReasons(map[string]int{"passkey_refused": 4, "passkey_unknown": 2})
}

// TestPasskeyFlood shows that the numbers of rejected passkeys and open prompts are limited. Valid
// passkeys do not count.
func TestPasskeyFlood(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	key := b.passkey()
	w.limits.Set(limit.Rates{
		limit.LoginPerNetwork:     limit.Of(3, 24*time.Hour),
		limit.AuthorizePerNetwork: limit.Of(12, 24*time.Hour),
	})

	// Valid passkeys do not count.
	for range 4 {
		b.show(key, "/dashboard/confirm", "/dashboard/confirm").leadsTo(t, "/dashboard")
	}

	// Rejected passkeys count, and the audit trail records only a few of them.
	form := url.Values{"form": {b.token("/dashboard/confirm")}, "prompt": {"none"}}
	for range 8 {
		b.sendKey("/dashboard/confirm", form, []byte("{}")).wrongKey(t)
	}
	// There are three refusals, and one or two for too many attempts.
	if n := len(w.refusedLogins()); n < 4 || n > 5 {
		t.Errorf("the trail has %d refusals, want 4 or 5", n)
	}

	// Beyond the limit of prompts, login pages offer only the password.
	offered := 0
	for range 20 {
		login := w.browser().get(doorway)
		if strings.Contains(login.body, "data-options") {
			offered++
			continue
		}
		login.wantStatus(t, http.StatusOK)
		login.wantText(t, `id="password"`)
	}
	if offered != 12 {
		t.Errorf("%d pages asked for a passkey, want 12", offered)
	}
}
