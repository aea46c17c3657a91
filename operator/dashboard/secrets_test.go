package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// makeKey creates an API key with browser b, in the project whose pages are below base. valid
// reports whether the key is still valid.
func (w *world) makeKey(b browser, base, name string) (id string, valid func() bool) {
	w.Helper()
	ctx := w.Context()
	secret := b.post(base+"/keys/new", base+"/keys", url.Values{"name": {name}, "scope": {"Voice"}}).find(
		w, `<code>(PT[0-9a-f]{64})<`)
	k, err := w.fabric.APIKeys.Authenticate(ctx, w.one.ID, secret)
	must(w, err)
	return k.ID, func() bool {
		_, err := w.fabric.APIKeys.Authenticate(ctx, w.one.ID, secret)
		if err != nil && !errors.Is(err, problem.Unauthenticated) {
			w.Fatal(err)
		}
		return err == nil
	}
}

// makeToken creates a subscriber's token in the same way. valid reports whether it is still valid.
func (w *world) makeToken(b browser, base string) (valid func() bool) {
	w.Helper()
	at := base + "/tokens/make/subscriber"
	raw := b.post(at, at, url.Values{"reference": {"sub-1"}, "new": {"sub-1"}}).find(
		w, `id="made"><span class="copy"><code>([^<]+)<`)
	facts := b.post(base+"/tokens", base+"/tokens/inspect", url.Values{"token": {raw}})
	if !strings.Contains(facts.body, "Created manually by") {
		w.Errorf("the token's page does not say who created it: %s", facts.body)
	}

	return func() bool {
		_, err := w.fabric.Tokens.Open(w.Context(), raw, fabric.SAT)
		if err != nil && !errors.Is(err, problem.Unauthenticated) {
			w.Fatal(err)
		}
		return err == nil
	}
}

// TestSecretsOfOperator shows that an operator's page lists the secrets that the operator has seen.
// They stay valid unless they are revoked when the operator is deleted. Secrets that others have
// seen cannot be revoked there.
func TestSecretsOfOperator(t *testing.T) {
	w := newWorld(t)
	_, ann := w.operator("ann@example.com", ofAll)
	bob, b := w.operator("bob@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	base := "/dashboard/projects/" + w.one.ID

	// Both operators have seen secrets. Bob's page lists only the ones he has seen.
	kept, keptGood := w.makeKey(b, base, "kept")
	ended, endedGood := w.makeKey(b, base, "ended")
	foreign, foreignGood := w.makeKey(ann, base, "of ann")
	bobs, anns := w.makeToken(b, base), w.makeToken(ann, base)

	page := "/dashboard/operators/" + bob.ID
	shown := ann.get(page)
	for _, want := range []string{`value="api_key ` + kept, `value="api_key ` + ended, `value="tokens"`} {
		if !strings.Contains(shown.body, want) {
			t.Errorf("the operator's page lacks %s", want)
		}
	}

	if strings.Contains(shown.body, foreign) {
		t.Error("the page shows another operator's secrets")
	}

	// Revoking the selected secrets leaves the others valid.
	choose := url.Values{"end": {"api_key " + ended, "api_key " + foreign}}
	ann.post(page, page+"/revoke", choose).leadsTo(t, page+"?done=madeended")
	if endedGood() || !keptGood() || !foreignGood() || !bobs() || !anns() {
		t.Errorf("valid: revoked key %v, kept key %v, other key %v, tokens %v and %v, want all but the first",
			endedGood(), keptGood(), foreignGood(), bobs(), anns())
	}

	// To delete the operator, the email must be typed. The form also revokes the selected secrets.
	if a := ann.post(page, page+"/delete",
		url.Values{"confirm": {"ann@example.com"},
			"end": {"tokens"}}); a.StatusCode != http.StatusUnprocessableEntity || !bobs() {
		t.Errorf("deleting without the email returned %s, want 422 and no revocation", a.Status)
	}

	ann.post(page, page+"/delete", url.Values{"confirm": {"bob@example.com"}, "end": {"tokens"}}).leadsTo(
		t, "/dashboard/operators?done=operatordeleted")
	if bobs() || !anns() || !keptGood() {
		t.Errorf("valid after the deletion: the token %v, the other token %v, the key %v, want all but the first",
			bobs(), anns(), keptGood())
	}
}

// TestSecretsAreComplete shows that a key is listed on its operator's page no matter how many newer
// secrets exist.
func TestSecretsAreComplete(t *testing.T) {
	w := newWorld(t)
	_, ann := w.operator("ann@example.com", ofAll)
	bob, b := w.operator("bob@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	base := "/dashboard/projects/" + w.one.ID
	secret := b.post(base+"/keys/new", base+"/keys", url.Values{"name": {"hidden"}, "scope": {"Voice"}}).find(
		t, `<code>(PT[0-9a-f]{64})<`)
	k, err := w.fabric.APIKeys.Authenticate(t.Context(), w.one.ID, secret)
	must(t, err)

	// Record newer keys that have been deleted.
	asBob := audit.With(t.Context(), &audit.Origin{Actor: audit.Actor{Kind: audit.Operator, ID: bob.ID}})
	for range page.MaxSize + 1 {
		must(t, w.rows.Record(asBob, audit.Of("api_key.created", w.one.ID, "api_key", "one-that-is-gone")))
	}

	at := "/dashboard/operators/" + bob.ID
	if a := ann.get(at); !strings.Contains(a.body, `value="api_key `+k.ID) {
		t.Error("the page lacks a key that is older than many others")
	}
	ann.post(at, at+"/revoke", url.Values{"end": {"api_key " + k.ID}}).leadsTo(t, at+"?done=madeended")
	if _, err := w.fabric.APIKeys.Authenticate(t.Context(), w.one.ID, secret); !errors.Is(err,
		problem.Unauthenticated) {
		t.Errorf("authenticating with the revoked key: %v, want Unauthenticated", err)
	}
}

// TestSecretsThroughKey shows that the page also lists secrets that were created with a key whose
// secret the operator has seen, even if that key has been revoked.
func TestSecretsThroughKey(t *testing.T) {
	w := newWorld(t)
	_, ann := w.operator("ann@example.com", ofAll)
	bob, b := w.operator("bob@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	base := "/dashboard/projects/" + w.one.ID
	secret := b.post(base+"/keys/new", base+"/keys",
		url.Values{"name": {"keeper"}, "scope": {"Management"}}).find(t, `<code>(PT[0-9a-f]{64})<`)
	keeper, err := w.fabric.APIKeys.Authenticate(t.Context(), w.one.ID, secret)
	must(t, err)

	// as creates a key in a request that was authenticated with the key id.
	as := func(id, name string) fabric.APIKey {
		t.Helper()
		ctx := audit.With(t.Context(), &audit.Origin{Actor: audit.Actor{Kind: audit.APIKey, ID: id}})
		k, _, err := w.fabric.APIKeys.Create(
			ctx, w.one.ID, fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Management}}, nil)
		must(t, err)
		return k
	}

	child := as(keeper.ID, "child")
	grandchild := as(child.ID, "grandchild")
	other := as("a-key-of-somebody-else", "other")
	must(t, w.fabric.APIKeys.Revoke(t.Context(), w.one.ID, keeper.ID))

	at := "/dashboard/operators/" + bob.ID
	shown := ann.get(at).body
	for _, want := range []string{`value="api_key ` + child.ID, "Created with <bdi>keeper</bdi>,",
		`value="api_key ` + grandchild.ID, "Created with <bdi>child</bdi>,"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the operator's page lacks %s", want)
		}
	}

	if strings.Contains(shown, other.ID) || strings.Contains(shown, `value="api_key `+keeper.ID) {
		t.Error("the page lists another operator's key, or one that is no longer valid")
	}

	ann.post(at, at+"/revoke", url.Values{"end": {"api_key " + grandchild.ID}}).leadsTo(t, at+"?done=madeended")
	if k, err := w.fabric.APIKeys.Find(t.Context(), w.one.ID, grandchild.ID); err != nil || k.Revoked.IsZero() {
		t.Errorf("the revoked key is %+v, %v, want it revoked", k, err)
	}
}

// TestDeleteRevokesFirst shows that if the selected secrets cannot be revoked, the operator is
// disabled but not deleted, so that the secrets remain listed.
func TestDeleteRevokesFirst(t *testing.T) {
	w := newWorld(t)
	_, ann := w.operator("ann@example.com", ofAll)
	bob, b := w.operator("bob@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	at := "/dashboard/projects/" + w.one.ID + "/tokens/make/subscriber"
	b.post(at, at, url.Values{"reference": {"sub-1"}, "new": {"sub-1"}}).find(
		t, `id="made"><span class="copy"><code>([^<]+)<`)

	at = "/dashboard/operators/" + bob.ID
	chosen := url.Values{"confirm": {"bob@example.com"}, "end": {"tokens"}}
	w.full.Store(true)
	if a := ann.post(at, at+"/delete", chosen); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "but not deleted: the selected secrets could not all be revoked") ||
		!strings.Contains(a.body, `value="tokens"`) {
		t.Errorf("deleting an operator whose secrets cannot be revoked returned %s: %s", a.Status, a.body)
	}
	if o, err := w.operators.Find(t.Context(), bob.ID); err != nil || !o.Disabled {
		t.Errorf("the operator is %+v, %v, want it disabled", o, err)
	}

	w.full.Store(false)
	ann.post(at, at+"/delete", chosen).leadsTo(t, "/dashboard/operators?done=operatordeleted")
	if _, err := w.operators.Find(t.Context(), bob.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("finding the deleted operator: %v, want NotFound", err)
	}
}
