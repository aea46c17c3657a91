package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/page"
)

// factorsOf adds a passkey, an authenticator app and recovery codes to a subscriber. It returns
// the secrets that no response may contain.
func (w *world) factorsOf(id string) (secrets []string) {
	w.t.Helper()
	ctx, o := w.t.Context(), factor.Owner{Kind: factor.Subscriber, ID: id}
	key := &factortest.Authenticator{Origin: "http://localhost:8080"}
	options := must[[]byte](w.t)(w.factors.BeginPasskey(ctx, o, "test", "ada", "Ada"))
	p := must[factor.Passkey](w.t)(w.factors.CreatePasskey(
		ctx, o, false, "test", "Ada's laptop", key.Create(options)))
	e := must[factor.Enrollment](w.t)(w.factors.BeginTOTP(ctx, o, "test", "Acme", "ada"))
	if err := w.factors.ConfirmTOTP(ctx, o, false, "test", factortest.Code(e.Secret, w.now())); err != nil {
		w.t.Fatal(err)
	}
	codes := must[[]string](w.t)(w.factors.NewCodes(ctx, o))
	return append(codes, e.Secret, p.Credential, "publicKey", "sealed", "hash")
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
	_, managing, err := w.fabric.APIKeys.Create(t.Context(), w.project.ID,
		fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Management, fabric.Voice}}, nil)
	if err != nil {
		t.Fatal(err)
	}

	id := w.tokens(`{"reference":"ada@example.com"}`).SubscriberID
	return factorList{
		world:   w,
		path:    subscribers + "/" + id + "/factors",
		ids:     map[string]string{},
		reader:  func(r *http.Request) { r.SetBasicAuth(w.project.ID, w.key) },
		manager: func(r *http.Request) { r.SetBasicAuth(w.project.ID, managing) },
	}, id
}

// want checks the types of the listed factors, and records their ids.
func (l factorList) want(types ...string) reply {
	l.t.Helper()
	got := l.call(l.reader, "GET", l.path, "")
	data := as[struct{ Data []map[string]any }](l.t, got).Data
	if got.status != http.StatusOK || len(data) != len(types) {
		l.t.Fatalf("GET %s: %d %s, want %v", l.path, got.status, got.text, types)
	}

	for i, f := range data {
		if f["type"] != types[i] {
			l.t.Errorf("factor %d is %v, want a %s", i, f, types[i])
		}
		at, err := time.Parse(time.RFC3339, fmt.Sprint(f["created_at"]))
		if err != nil || time.Since(at).Abs() > time.Hour || f["used_at"] != nil && f["type"] == "passkey" {
			l.t.Errorf("factor %d was created at %v and used at %v, want it new", i, f["created_at"], f["used_at"])
		}
		l.ids[types[i]] = fmt.Sprint(f["id"])
	}
	return got
}

// TestListFactors shows that second factors are listed without their secrets, and only for their
// project.
func TestListFactors(t *testing.T) {
	l, id := newFactorList(t)
	got := l.call(l.reader, "GET", l.path, "")
	if got.status != http.StatusOK || !strings.Contains(got.text, `"data":[]`) {
		t.Errorf("the factors of a subscriber without any: %d %s, want an empty list", got.status, got.text)
	}

	secrets := l.factorsOf(id)
	got = l.want("passkey", "totp", "recovery_codes")
	if !strings.Contains(got.text, `"name":"Ada's laptop"`) || !strings.Contains(got.text, `"left":10`) ||
		!strings.Contains(got.text, `"backed_up":false`) {
		t.Errorf("the list is %s, want the laptop and ten recovery codes", got.text)
	}
	for _, secret := range secrets {
		if strings.Contains(got.text, secret) {
			t.Errorf("the list contains %q", secret)
		}
	}

	if got := l.call(l.stranger(), "GET", l.path, ""); got.status != http.StatusNotFound {
		t.Errorf("listing as another project: got %d %s, want 404", got.status, got.text)
	}
}

// TestRemoveFactors shows that credentials with Management can remove a subscriber's factors one by
// one. Other credentials cannot.
func TestRemoveFactors(t *testing.T) {
	l, id := newFactorList(t)
	l.factorsOf(id)
	l.want("passkey", "totp", "recovery_codes")
	for name, auth := range map[string]authorization{"another project": l.stranger(),
		"a key without Management": l.reader} {
		for _, id := range l.ids {
			if got := l.call(auth, "DELETE", l.path+"/"+id, ""); got.status != http.StatusUnauthorized &&
				got.status != http.StatusNotFound {
				t.Errorf("%s: DELETE %s: %d %s, want 401 or 404", name, id, got.status, got.text)
			}
		}
	}

	other := l.tokens(`{"reference":"bob@example.com"}`).SubscriberID
	remove := func(path string, want int) {
		t.Helper()
		if got := l.call(l.manager, "DELETE", path, ""); got.status != want {
			t.Errorf("DELETE %s: %d %s, want %d", path, got.status, got.text, want)
		}
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

	l.factorsOf(other)
	remove(l.path+"/"+l.ids["totp"], http.StatusNoContent)
	l.want()
	left, err := l.fabric.Subscribers.ListFactors(t.Context(), l.project.ID, other, page.Query{})
	if err != nil || len(left.Items) != 3 {
		t.Errorf("another subscriber has %v, %v, want its three factors", left.Items, err)
	}
}
