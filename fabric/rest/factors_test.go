package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/page"
)

// addFactors adds a passkey, an authenticator app and recovery codes to a subscriber. It returns
// the secrets and words that no response may contain.
func (w *world) addFactors(id string) (secrets []string) {
	w.t.Helper()
	ctx := w.t.Context()
	owner := factor.Owner{Kind: factor.Subscriber, ID: id}
	key := &factortest.Authenticator{Origin: "http://localhost:8080"}
	options, err := w.factors.BeginPasskey(ctx, owner, "test", "ada", "Ada")
	if err != nil {
		w.t.Fatal(err)
	}
	passkey, err := w.factors.CreatePasskey(ctx, owner, false, "test", "Ada's laptop", key.Create(options))
	if err != nil {
		w.t.Fatal(err)
	}

	app, err := w.factors.BeginTOTP(ctx, owner, "test", "Acme", "ada")
	if err != nil {
		w.t.Fatal(err)
	}
	code := factortest.Code(app.Secret, w.now())
	if err := w.factors.ConfirmTOTP(ctx, owner, false, "test", code); err != nil {
		w.t.Fatal(err)
	}
	codes, err := w.factors.NewCodes(ctx, owner)
	if err != nil {
		w.t.Fatal(err)
	}
	return append(codes, app.Secret, passkey.Credential, "publicKey", "sealed", "hash")
}

// A factorList is the list of a subscriber's factors.
type factorList struct {
	*world
	path    string
	ids     map[string]string // ids of the factors by type
	reader  authorization
	manager authorization
}

func newFactorList(t *testing.T) (l factorList, subscriberID string) {
	w := newWorld(t)
	id := w.tokens(`{"reference":"ada@example.com"}`).SubscriberID
	return factorList{
		world:   w,
		path:    subscribers + "/" + id + "/factors",
		ids:     make(map[string]string),
		reader:  w.basic(),
		manager: w.administrator(),
	}, id
}

// want checks the types of the listed factors, and records their ids.
func (l factorList) want(types ...string) reply {
	l.t.Helper()
	r := l.call(l.reader, "GET", l.path, "")
	r.wantStatus(l.t, "GET "+l.path, http.StatusOK)
	type body struct {
		ID, Type string
		Created  time.Time  `json:"created_at"`
		Used     *time.Time `json:"used_at"`
	}
	factors := as[listed[body]](l.t, r).Data
	if len(factors) != len(types) {
		l.t.Fatalf("GET %s: got %s, want %v", l.path, r.text, types)
	}

	for i, f := range factors {
		if f.Type != types[i] {
			l.t.Errorf("factor %d is a %s, want a %s", i, f.Type, types[i])
		}
		if time.Since(f.Created).Abs() > time.Hour {
			l.t.Errorf("the %s was created at %v, want within the last hour", f.Type, f.Created)
		}
		if f.Type == "passkey" && f.Used != nil {
			l.t.Errorf("the passkey was used at %v, want never", *f.Used)
		}
		l.ids[types[i]] = f.ID
	}
	return r
}

// TestListFactors shows that second factors are listed without their secrets, and only for their
// project.
func TestListFactors(t *testing.T) {
	l, id := newFactorList(t)
	r := l.call(l.reader, "GET", l.path, "")
	r.wantStatus(t, "GET for a subscriber without factors", http.StatusOK)
	r.wantText(t, "GET for a subscriber without factors", `"data":[]`)

	secrets := l.addFactors(id)
	r = l.want("passkey", "totp", "recovery_codes")
	r.wantText(t, "GET", `"name":"Ada's laptop"`, `"left":10`, `"backed_up":false`)
	r.wantNoText(t, "GET", secrets...)
	r = l.call(l.stranger(), "GET", l.path, "")
	r.wantStatus(t, "GET by another project", http.StatusNotFound)
}

// TestRemoveFactors shows that credentials with Management can remove a subscriber's factors one by
// one. Other credentials cannot.
func TestRemoveFactors(t *testing.T) {
	l, id := newFactorList(t)
	l.addFactors(id)
	l.want("passkey", "totp", "recovery_codes")
	refusals := []int{http.StatusUnauthorized, http.StatusNotFound}
	for name, auth := range map[string]authorization{
		"another project":          l.stranger(),
		"a key without Management": l.reader,
	} {
		for _, id := range l.ids {
			r := l.call(auth, "DELETE", l.path+"/"+id, "")
			if !slices.Contains(refusals, r.status) {
				t.Errorf("%s: DELETE %s: got %d %s, want one of %v", name, id, r.status, r.text, refusals)
			}
		}
	}

	other := l.tokens(`{"reference":"bob@example.com"}`).SubscriberID
	remove := func(path string, want int) {
		t.Helper()
		r := l.call(l.manager, "DELETE", path, "")
		r.wantStatus(t, "DELETE "+path, want)
	}
	remove(subscribers+"/"+other+"/factors/"+l.ids["passkey"], http.StatusNotFound)
	remove(l.path+"/nothing", http.StatusNotFound)
	remove(l.path+"/"+id, http.StatusNotFound)
	l.want("passkey", "totp", "recovery_codes")

	remove(l.path+"/"+strings.ToUpper(l.ids["passkey"]), http.StatusNoContent)
	remove(l.path+"/"+l.ids["passkey"], http.StatusNotFound)
	l.want("totp", "recovery_codes")
	remove(l.path+"/recovery_codes", http.StatusNoContent)
	l.want("totp")

	l.addFactors(other)
	remove(l.path+"/"+l.ids["totp"], http.StatusNoContent)
	l.want()
	left, err := l.fabric.Subscribers.ListFactors(t.Context(), l.project.ID, other, page.Query{})
	if err != nil || len(left.Items) != 3 {
		t.Errorf("another subscriber has %v, %v, want its three factors", left.Items, err)
	}
}
