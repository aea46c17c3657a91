package dashboard_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// copied returns a browser with the cookies that b has now.
func (b browser) copied() browser {
	b.Helper()
	u, err := url.Parse(b.url)
	must(b, err)
	jar, err := cookiejar.New(nil)
	must(b, err)
	jar.SetCookies(u, b.client.Jar.Cookies(u))
	other := b.world.browser()
	other.client.Jar = jar
	return other
}

// doubleClick sends the form of a page to path twice with the same cookies. It returns both answers.
// Like a browser, b keeps only the cookies of the second answer.
func (b browser) doubleClick(page, path string, form url.Values) (first, second answer) {
	b.Helper()
	form.Set("form", b.token(page))
	first = b.copied().send(b.request("POST", path, form))
	return first, b.send(b.request("POST", path, form))
}

// TestDoubleClickOnDelete shows that both requests of a double click on a form that deletes
// something lead to the same page, although only one of them deletes it. This includes the form that
// deletes the project in the path. The same form is refused if it is sent again later.
func TestDoubleClickOnDelete(t *testing.T) {
	w := newWorld(t)
	base := "/dashboard/projects/" + w.one.ID
	room := base + "/resources/" + w.room("lobby").ID
	name := "billing"
	key, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)
	_, _, err = w.fabric.APIKeys.Rotate(t.Context(), w.one.ID, key.ID, time.Hour, nil)
	must(t, err)
	invitation, _, err := w.operators.Invite(t.Context(), "eve@example.com",
		operator.Membership{Role: operator.Viewer}, "")
	must(t, err)
	keyPage := base + "/keys/" + key.ID

	_, b := w.operator("ann@example.com", ofAll)
	for _, tt := range []struct {
		page, action, name, want string
		later                    int // status if the form is sent again later
	}{
		{room, room + "/delete", "lobby", base + "/resources?done=resourcedeleted", http.StatusNotFound},
		{keyPage, keyPage + "/old-secret", "", keyPage + "?done=keyended", http.StatusUnprocessableEntity},
		{"/dashboard/operators", "/dashboard/operators/invitations/" + invitation.ID + "/withdraw", "",
			"/dashboard/operators?done=withdrawn", http.StatusNotFound},
		{base + "/settings", base + "/delete", w.one.Name, "/dashboard/projects?done=projectdeleted",
			http.StatusNotFound},
	} {
		forms := formsOf(t, tt.page, b.get(tt.page))
		i := slices.IndexFunc(forms, func(f shownForm) bool { return f.action == tt.action })
		if i < 0 {
			t.Fatalf("the page %s has no form %s", tt.page, tt.action)
		}
		form := forms[i].untouched()
		form.Set("confirm", tt.name)
		first, second := b.doubleClick(tt.page, tt.action, form)
		first.leadsTo(t, tt.want)
		second.leadsTo(t, tt.want)
		w.pass(afterwards)
		b.send(b.request("POST", tt.action, form)).wantStatus(t, tt.later)
	}
}

// TestDoubleClickOnEntry shows that a double click on a form that replaces the session gets the
// same answer as a single click. The same form is refused if it is sent again later.
func TestDoubleClickOnEntry(t *testing.T) {
	w := newWorldThat(t, operator.Roles()...)
	_, token, err := w.operators.First(t.Context())
	must(t, err)
	b, form := w.browser(), setupForm(token)
	b.get("/dashboard/login") // gives the browser its cookie
	before := b.copied()
	first, second := b.doubleClick("/dashboard/setup?token="+token, "/dashboard/setup", form)
	first.leadsTo(t, "/dashboard/factor")
	second.leadsTo(t, "/dashboard/factor")

	secret := b.get("/dashboard/enrol").secret(t)
	code := func() string {
		c, err := totp.GenerateCode(secret, w.now())
		must(t, err)
		return c
	}
	first, second = b.doubleClick("/dashboard/enrol", "/dashboard/enrol", url.Values{"code": {code()}})
	const codes = `id="recovery-codes">\s*<li>([a-z2-7-]+)`
	if one, other := first.find(t, codes), second.find(t, codes); one != other {
		t.Errorf("a double click shows the recovery codes %s and %s, want the same", one, other)
	}
	b.get("/dashboard/account").wantText(t, "Authenticator app", "10 codes are left.")

	w.pass(time.Minute)
	proof := url.Values{"password": {good}, "code": {code()}}
	first, second = b.doubleClick("/dashboard/confirm", "/dashboard/confirm", proof)
	first.leadsTo(t, "/dashboard")
	second.leadsTo(t, "/dashboard")
	b.get("/dashboard/account").wantStatus(t, http.StatusOK)
	before.send(before.request("POST", "/dashboard/setup", form)).wantStatus(t, http.StatusNotFound)
}
