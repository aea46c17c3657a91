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
	e := must[factor.Enrolment](w.t)(w.factors.BeginTOTP(ctx, o, "test", "Acme", "ada"))
	if err := w.factors.ConfirmTOTP(ctx, o, false, "test", factortest.Code(e.Secret, w.now())); err != nil {
		w.t.Fatal(err)
	}
	codes := must[[]string](w.t)(w.factors.NewCodes(ctx, o))
	return append(codes, e.Secret, p.Credential, "publicKey", "sealed", "hash")
}

// TestFactors shows that second factors are listed without their secrets, and that managers
// of the project can remove them.
func TestFactors(t *testing.T) {
	w := newWorld(t)
	made := w.tokens(`{"reference":"ada@example.com"}`)
	of := subscribers + "/" + made.SubscriberID + "/factors"
	_, managing, err := w.fabric.APIKeys.Create(t.Context(), w.project.ID,
		fabric.APIKeyInput{Scopes: []fabric.Scope{fabric.Management, fabric.Voice}}, nil)
	if err != nil {
		t.Fatal(err)
	}

	manager := func(r *http.Request) { r.SetBasicAuth(w.project.ID, managing) }
	reader := func(r *http.Request) { r.SetBasicAuth(w.project.ID, w.key) }
	if got := w.call(reader, "GET", of, ""); got.status != http.StatusOK || !strings.Contains(got.text, `"data":[]`) {
		t.Errorf("the factors of a subscriber without any: %d %s, want an empty list", got.status, got.text)
	}

	secrets := w.factorsOf(made.SubscriberID)
	ids := map[string]string{}
	list := func(want ...string) reply {
		t.Helper()
		got := w.call(reader, "GET", of, "")
		data := as[struct{ Data []map[string]any }](t, got).Data
		if got.status != http.StatusOK || len(data) != len(want) {
			t.Fatalf("GET %s: %d %s, want %v", of, got.status, got.text, want)
		}
		for i, f := range data {
			if f["type"] != want[i] {
				t.Errorf("factor %d is %v, want a %s", i, f, want[i])
			}
			if at, err := time.Parse(time.RFC3339, fmt.Sprint(f["created_at"])); err != nil ||
				time.Since(at).Abs() > time.Hour || f["used_at"] != nil && f["type"] == "passkey" {
				t.Errorf("factor %d was created at %v and used at %v", i, f["created_at"], f["used_at"])
			}
			ids[want[i]] = fmt.Sprint(f["id"])
		}
		return got
	}

	got := list("passkey", "totp", "recovery_codes")
	if !strings.Contains(got.text, `"name":"Ada's laptop"`) || !strings.Contains(got.text, `"left":10`) ||
		!strings.Contains(got.text, `"backed_up":false`) {
		t.Errorf("the list is %s", got.text)
	}

	for _, secret := range secrets {
		if strings.Contains(got.text, secret) {
			t.Errorf("the list contains %q", secret)
		}
	}

	for name, auth := range map[string]authorization{"another project": w.stranger(),
		"a key without Management": reader} {
		for _, id := range ids {
			if got := w.call(auth, "DELETE", of+"/"+id, ""); got.status != http.StatusUnauthorized &&
				got.status != http.StatusNotFound {
				t.Errorf("%s: DELETE %s: %d %s", name, id, got.status, got.text)
			}
		}
	}

	if got := w.call(w.stranger(), "GET", of, ""); got.status != http.StatusNotFound {
		t.Errorf("listing by another project: %d %s", got.status, got.text)
	}

	other := w.tokens(`{"reference":"bob@example.com"}`)
	remove := func(path string, want int) {
		t.Helper()
		if got := w.call(manager, "DELETE", path, ""); got.status != want {
			t.Errorf("DELETE %s: %d %s, want %d", path, got.status, got.text, want)
		}
	}

	remove(subscribers+"/"+other.SubscriberID+"/factors/"+ids["passkey"], http.StatusNotFound)
	remove(of+"/nothing", http.StatusNotFound)
	remove(of+"/"+made.SubscriberID, http.StatusNotFound)
	list("passkey", "totp", "recovery_codes")
	remove(of+"/"+strings.ToUpper(ids["passkey"]), http.StatusNoContent)
	remove(of+"/"+ids["passkey"], http.StatusNotFound)
	list("totp", "recovery_codes")
	remove(of+"/recovery_codes", http.StatusNoContent)
	list("totp")
	w.factorsOf(other.SubscriberID)
	remove(of+"/"+ids["totp"], http.StatusNoContent)
	list()
	left, err := w.fabric.Subscribers.ListFactors(t.Context(), w.project.ID, other.SubscriberID, page.Query{})
	if err != nil || len(left.Items) != 3 {
		t.Errorf("another subscriber has %v, %v, want its three factors", left.Items, err)
	}
}
