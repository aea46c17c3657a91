package dashboard_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// newKey creates an API key with browser b, in the project whose pages are below base. It returns the
// key with its secret.
func (w *world) newKey(b browser, base, name, scope string) (k fabric.APIKey, secret string) {
	w.Helper()
	created := b.post(base+"/keys/new", base+"/keys", url.Values{"name": {name}, "scope": {scope}})
	secret = created.find(w, `<code>(PT[0-9a-f]{64})<`)
	k, err := w.fabric.APIKeys.Authenticate(w.Context(), w.one.ID, secret)
	must(w, err)
	return k, secret
}

// keyIsValid reports whether the secret of an API key is accepted.
func (w *world) keyIsValid(secret string) bool {
	w.Helper()
	_, err := w.fabric.APIKeys.Authenticate(w.Context(), w.one.ID, secret)
	if err != nil && !errors.Is(err, problem.Unauthenticated) {
		w.Fatal(err)
	}
	return err == nil
}

// newToken creates a subscriber's token through the form, and returns the token.
func (w *world) newToken(b browser, base string) string {
	w.Helper()
	form := base + "/tokens/make/subscriber"
	created := b.post(form, form, url.Values{"reference": {"sub-1"}, "new": {"sub-1"}})
	token := created.find(w, shownToken)
	b.post(base+"/tokens", base+"/tokens/inspect", url.Values{"token": {token}}).
		wantText(w, "Created manually by")
	return token
}

// tokenIsValid reports whether a subscriber's token is accepted.
func (w *world) tokenIsValid(token string) bool {
	w.Helper()
	_, err := w.fabric.Tokens.Open(w.Context(), token, fabric.SAT)
	if err != nil && !errors.Is(err, problem.Unauthenticated) {
		w.Fatal(err)
	}
	return err == nil
}

// TestSecretsOfOperator shows that an operator's page lists the secrets that the operator has seen.
// Selected ones can be revoked, with or without deleting the operator; the others stay valid.
// Secrets that others have seen cannot be revoked there.
func TestSecretsOfOperator(t *testing.T) {
	w := newWorld(t)
	_, ann := w.operator("ann@example.com", ofAll)
	bob, b := w.operator("bob@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	base := "/dashboard/projects/" + w.one.ID

	// Both operators have seen secrets. Bob's page lists only the ones he has seen.
	kept, keptSecret := w.newKey(b, base, "kept", "Voice")
	ended, endedSecret := w.newKey(b, base, "ended", "Voice")
	foreign, foreignSecret := w.newKey(ann, base, "of ann", "Voice")
	bobsToken, annsToken := w.newToken(b, base), w.newToken(ann, base)

	at := "/dashboard/operators/" + bob.ID
	shown := ann.get(at)
	shown.wantText(t, `value="api_key `+kept.ID, `value="api_key `+ended.ID, `value="tokens"`)
	shown.wantNoText(t, foreign.ID)

	type validity struct{ kept, ended, foreign, bobsToken, annsToken bool }
	valid := func() validity {
		return validity{
			kept:      w.keyIsValid(keptSecret),
			ended:     w.keyIsValid(endedSecret),
			foreign:   w.keyIsValid(foreignSecret),
			bobsToken: w.tokenIsValid(bobsToken),
			annsToken: w.tokenIsValid(annsToken),
		}
	}

	// Revoking the selected secrets leaves the others valid.
	selected := url.Values{"end": {"api_key " + ended.ID, "api_key " + foreign.ID}}
	ann.post(at, at+"/revoke", selected).leadsTo(t, at+"?done=madeended")
	withoutEnded := validity{kept: true, foreign: true, bobsToken: true, annsToken: true}
	if got := valid(); got != withoutEnded {
		t.Errorf("after a revocation, these secrets are valid: %+v, want %+v", got, withoutEnded)
	}

	// To delete the operator, the email must be typed. The form also revokes the selected secrets.
	wrongEmail := url.Values{"confirm": {"ann@example.com"}, "end": {"tokens"}}
	ann.post(at, at+"/delete", wrongEmail).wantRefused(t)
	if got := valid(); got != withoutEnded {
		t.Errorf("after a refused deletion, these secrets are valid: %+v, want %+v", got, withoutEnded)
	}

	rightEmail := url.Values{"confirm": {"bob@example.com"}, "end": {"tokens"}}
	ann.post(at, at+"/delete", rightEmail).leadsTo(t, "/dashboard/operators?done=operatordeleted")
	withoutToken := validity{kept: true, foreign: true, annsToken: true}
	if got := valid(); got != withoutToken {
		t.Errorf("after the deletion, these secrets are valid: %+v, want %+v", got, withoutToken)
	}
}

// TestSecretsAreComplete shows that a key is listed on its operator's page no matter how many newer
// secrets exist.
func TestSecretsAreComplete(t *testing.T) {
	w := newWorld(t)
	_, ann := w.operator("ann@example.com", ofAll)
	bob, b := w.operator("bob@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	base := "/dashboard/projects/" + w.one.ID
	k, secret := w.newKey(b, base, "hidden", "Voice")

	// Record newer keys that have been deleted.
	asBob := audit.With(t.Context(), &audit.Origin{Actor: audit.Actor{Kind: audit.Operator, ID: bob.ID}})
	for range page.MaxSize + 1 {
		must(t, w.rows.Record(asBob, audit.Of("api_key.created", w.one.ID, "api_key", "one-that-is-gone")))
	}

	at := "/dashboard/operators/" + bob.ID
	ann.get(at).wantText(t, `value="api_key `+k.ID)
	ann.post(at, at+"/revoke", url.Values{"end": {"api_key " + k.ID}}).leadsTo(t, at+"?done=madeended")
	if w.keyIsValid(secret) {
		t.Error("the revoked key is accepted")
	}
}

// TestSecretsThroughKey shows that the page also lists secrets that were created with a key whose
// secret the operator has seen, even if that key has been revoked.
func TestSecretsThroughKey(t *testing.T) {
	w := newWorld(t)
	_, ann := w.operator("ann@example.com", ofAll)
	bob, b := w.operator("bob@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	base := "/dashboard/projects/" + w.one.ID
	keeper, _ := w.newKey(b, base, "keeper", "Management")

	// createWith creates a key in a request that was authenticated with the key that has the given id.
	createWith := func(id, name string) fabric.APIKey {
		t.Helper()
		ctx := audit.With(t.Context(), &audit.Origin{Actor: audit.Actor{Kind: audit.APIKey, ID: id}})
		k, _, err := w.fabric.APIKeys.Create(
			ctx, w.one.ID, fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Management}}, nil)
		must(t, err)
		return k
	}

	child := createWith(keeper.ID, "child")
	grandchild := createWith(child.ID, "grandchild")
	other := createWith("a-key-of-somebody-else", "other")
	must(t, w.fabric.APIKeys.Revoke(t.Context(), w.one.ID, keeper.ID))

	at := "/dashboard/operators/" + bob.ID
	shown := ann.get(at)
	shown.wantText(t,
		`value="api_key `+child.ID, "Created with <bdi>keeper</bdi>,",
		`value="api_key `+grandchild.ID, "Created with <bdi>child</bdi>,")
	// Somebody else has seen the first of these keys, and the second is revoked.
	shown.wantNoText(t, other.ID, `value="api_key `+keeper.ID)

	ann.post(at, at+"/revoke", url.Values{"end": {"api_key " + grandchild.ID}}).leadsTo(t, at+"?done=madeended")
	k, err := w.fabric.APIKeys.Find(t.Context(), w.one.ID, grandchild.ID)
	must(t, err)
	if k.Revoked.IsZero() {
		t.Error("the selected key is not revoked")
	}
}

// TestDeleteRevokesFirst shows that if the selected secrets cannot be revoked, the operator is
// disabled but not deleted, so that the secrets remain listed.
func TestDeleteRevokesFirst(t *testing.T) {
	w := newWorld(t)
	_, ann := w.operator("ann@example.com", ofAll)
	bob, b := w.operator("bob@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	w.newToken(b, "/dashboard/projects/"+w.one.ID)

	at := "/dashboard/operators/" + bob.ID
	selected := url.Values{"confirm": {"bob@example.com"}, "end": {"tokens"}}
	w.full.Store(true)
	ann.post(at, at+"/delete", selected).wantRefused(t,
		"but not deleted: the selected secrets could not all be revoked", `value="tokens"`)
	disabled, err := w.operators.Find(t.Context(), bob.ID)
	must(t, err)
	if !disabled.Disabled {
		t.Error("after a failed revocation, the operator is not disabled")
	}

	w.full.Store(false)
	ann.post(at, at+"/delete", selected).leadsTo(t, "/dashboard/operators?done=operatordeleted")
	if _, err := w.operators.Find(t.Context(), bob.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("finding the deleted operator: %v, want NotFound", err)
	}
}
