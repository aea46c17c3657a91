package rest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

func TestKeyExpires(t *testing.T) {
	w := newWorld(t)
	k, auth := w.newKey(w.now().Add(time.Hour), fabric.Voice)
	sat := as[tokens](t, w.call(auth, "POST", issue, `{"reference":"ada"}`)).Token
	w.pass(59*time.Minute + 50*time.Second)
	w.wants(auth, http.StatusOK, "before it expires") // the key is now cached
	w.pass(10 * time.Second)
	w.wants(auth, http.StatusUnauthorized, "after it expired")
	w.wantInfo(sat, http.StatusOK) // tokens issued with the key keep their own lifetime

	boss := w.manager()
	later := itoa(w.now().Add(time.Hour).Unix())
	r := w.call(boss, "PATCH", keyPath+"/"+k.ID, `{"expires_at":`+later+`}`)
	r.wantStatus(t, "moving the expiry", http.StatusOK)
	w.wants(auth, http.StatusOK, "after its expiry was moved")
	r = w.call(boss, "PATCH", keyPath+"/"+k.ID, `{"expires_at":null}`)
	if got := as[keyBody](t, r); got.ExpiresAt != nil {
		t.Errorf("after the expiry was removed, the key expires at %s, want never", *got.ExpiresAt)
	}

	if err := w.fabric.APIKeys.Revoke(t.Context(), w.project.ID, k.ID); err != nil {
		t.Fatal(err)
	}
	w.wantInfo(sat, http.StatusUnauthorized) // revoking the key ends its tokens
}

func TestRotation(t *testing.T) {
	w := newWorld(t)
	_, boss := w.newKey(time.Time{}, fabric.Management, fabric.Voice)
	sat := w.tokens(`{"reference":"ada"}`).Token
	w.wants(w.basic(), http.StatusOK, "the first secret")
	rotate := func(body string) (keyBody, authorization) {
		t.Helper()
		r := w.call(boss, "POST", keyPath+"/"+w.keyID+"/rotate", body)
		r.wantStatus(t, "rotating", http.StatusOK)
		got := as[keyBody](t, r)
		if len(got.Token) != 66 {
			t.Fatalf("rotating returns a secret of %d characters, want 66", len(got.Token))
		}
		return got, w.withKey(got.Token)
	}

	rotated, second := rotate("")
	if rotated.Previous == nil {
		t.Fatal("rotating ends the old secret, want it valid for a day")
	}
	end, err := time.Parse(time.RFC3339, rotated.Previous.ExpiresAt)
	if err != nil {
		t.Fatal(err)
	}
	if day := w.now().Add(24 * time.Hour); end.After(day) || end.Before(day.Add(-time.Minute)) {
		t.Errorf("the old secret is valid until %s, want about %s", end, day)
	}

	w.wants(w.basic(), http.StatusOK, "the old secret in the overlap")
	w.wants(second, http.StatusOK, "the new secret in the overlap")
	w.wantInfo(sat, http.StatusOK) // tokens stay valid
	w.pass(24*time.Hour + time.Minute)
	w.wants(w.basic(), http.StatusUnauthorized, "the old secret after the overlap")
	w.wants(second, http.StatusOK, "the new secret after the overlap")

	_, third := rotate(`{"overlap":3600}`)
	w.wants(second, http.StatusOK, "the second secret in its overlap")
	_, fourth := rotate(`{"overlap":"60"}`)
	w.wants(second, http.StatusUnauthorized, "the second secret, when there is a fourth")
	w.wants(third, http.StatusOK, "the third secret in its overlap")
	_, fifth := rotate(`{"overlap":0}`)
	w.wants(third, http.StatusUnauthorized, "the third secret")
	w.wants(fourth, http.StatusUnauthorized, "the fourth secret, without overlap")
	w.wants(fifth, http.StatusOK, "the fifth secret")
}

// TestOldSecretEnds shows that a caller with a previous secret cannot create a key or a secret that
// would outlive the previous secret.
func TestOldSecretEnds(t *testing.T) {
	w := newWorld(t)
	k, old := w.newKey(time.Time{}, fabric.Management, fabric.Voice)
	rotated := as[keyBody](t, w.call(old, "POST", keyPath+"/"+k.ID+"/rotate", `{"overlap":3600}`))
	present := w.withKey(rotated.Token)
	created := as[keyBody](t, w.call(old, "POST", keyPath, `{"name":"x","permissions":["calling"]}`))
	w.wantExpiry(created, rotated.Previous.ExpiresAt, "a key created with the old secret")

	const tooLate = "expires_at:invalid_parameter"
	forever := `{"name":"x","permissions":["calling"],"expires_at":null}`
	if got := w.call(old, "POST", keyPath, forever).faults(t); got != tooLate {
		t.Errorf("POST of a lasting key with the old secret: got %s, want %s", got, tooLate)
	}
	if got := w.call(old, "PATCH", keyPath+"/"+created.ID, `{"expires_at":null}`).faults(t); got != tooLate {
		t.Errorf("PATCH to a lasting key with the old secret: got %s, want %s", got, tooLate)
	}
	r := w.call(old, "POST", keyPath+"/"+k.ID+"/rotate", "")
	r.wantStatus(t, "rotating with the old secret", http.StatusForbidden)

	w.wants(present, http.StatusOK, "the present secret")
	lasting := as[keyBody](t, w.call(present, "POST", keyPath, `{"name":"y","permissions":["calling"]}`))
	if lasting.ExpiresAt != nil {
		t.Errorf("a key created with the present secret expires at %s, want never", *lasting.ExpiresAt)
	}

	w.pass(time.Hour)
	w.wants(w.withKey(created.Token), http.StatusUnauthorized, "a key created with the old secret, after the overlap")
}

// TestEndOldSecret shows that the previous secret of a key can be ended on its own, even by a
// caller that presents this secret. The current secret stays valid.
func TestEndOldSecret(t *testing.T) {
	w := newWorld(t)
	k, old := w.newKey(time.Time{}, fabric.Management, fabric.Voice)
	path := keyPath + "/" + k.ID + "/secret/previous"
	if got := w.call(old, "DELETE", path, "").faults(t); got != ":no_old_secret" {
		t.Errorf("ending the old secret of a key with one secret: got %s, want :no_old_secret", got)
	}

	rotated := as[keyBody](t, w.call(old, "POST", keyPath+"/"+k.ID+"/rotate", ""))
	present := w.withKey(rotated.Token)
	w.wants(old, http.StatusOK, "the old secret") // the old secret is now cached
	r := w.call(old, "DELETE", path, "")
	r.wantStatus(t, "ending the old secret", http.StatusNoContent)
	w.wants(old, http.StatusUnauthorized, "the old secret after its end")
	w.wants(present, http.StatusOK, "the present secret")

	shown := as[keyBody](t, w.call(present, "GET", keyPath+"/"+k.ID, ""))
	if shown.Previous != nil {
		t.Errorf("after its end, the old secret is shown as %+v, want it omitted", *shown.Previous)
	}
	if shown.RevokedAt != nil {
		t.Errorf("after the end of the old secret, the key is revoked at %s, want it valid", *shown.RevokedAt)
	}
}

// TestOldSecretUsed shows that uses of the previous secret are visible, so that operators know
// when it is no longer needed.
func TestOldSecretUsed(t *testing.T) {
	w := newWorld(t)
	w.wants(w.basic(), http.StatusOK, "the secret before the rotation")
	w.settle()
	_, _, err := w.fabric.APIKeys.Rotate(t.Context(), w.project.ID, w.keyID, 24*time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}

	w.pass(2 * time.Hour)
	w.wants(w.basic(), http.StatusOK, "the old secret")
	recently := w.now().Add(-time.Minute)
	w.settle()
	key, err := w.fabric.APIKeys.Find(t.Context(), w.project.ID, w.keyID)
	if err != nil {
		t.Fatal(err)
	}
	if !key.OldUsed.After(recently) {
		t.Errorf("the old secret was used at %s, want a time after %s", key.OldUsed, recently)
	}
	if !key.LastUsed.After(recently) {
		t.Errorf("the key was used at %s, want a time after %s", key.LastUsed, recently)
	}
}
