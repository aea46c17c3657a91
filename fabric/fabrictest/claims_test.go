package fabrictest

import (
	"testing"

	"github.com/selvage/selvage/fabric"
)

// TestClaimsAndLocale shows that an update with both claims and a locale stores both.
func TestClaimsAndLocale(t *testing.T) {
	f, p := projectOf(t)
	s, err := f.Subscribers.Create(t.Context(), p.ID, fabric.SubscriberInput{Email: new("ada@example.com")})
	if err != nil {
		t.Fatal(err)
	}

	s, err = f.Subscribers.Update(t.Context(), p.ID, s.ID, fabric.SubscriberInput{
		Claims: &fabric.StandardClaims{Nickname: "Countess", Locale: "en"},
		Locale: new("de"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := (fabric.StandardClaims{Nickname: "Countess", Locale: "de"}); s.Claims != want {
		t.Errorf("the claims are %+v, want %+v", s.Claims, want)
	}
}
