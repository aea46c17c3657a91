package password

import (
	"fmt"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// TestForeign checks passwords against hashes from PHP, passlib, Django and Werkzeug, and against
// hashes that Python's hashlib and libxcrypt made in the same formats.
func TestForeign(t *testing.T) {
	const (
		salt     = "AAECAwQFBgcICQoLDA0ODw"
		password = "fathom lantern"
	)
	hashes := map[string]string{
		"bcrypt from PHP": "$2y$05$abcdefghijklmnopqrstuuQK5DHw8D1SIn9Sz2V9ppg8cVg9O7VlS",
		"PHC scrypt":      "$scrypt$ln=10,r=8,p=1$" + salt + "$3vB4whHS7NUXU6GM+M8u137IcGWy4Ua3FouuuyUplew",
		"scrypt from Werkzeug": "scrypt:1024:8:1$Ff3s9x$" +
			"74609ce1e13066a6f9f9fa1ef3f0427366b02dc457c34ab18862779d929a06d4" +
			"c05ad8d159e03fb480c709ce3d6fd23f9c33e34026d42585b6b75fc37d2f4286",
		"scrypt from Django": "scrypt$seasalt2$1024$8$1$" +
			"1YiXhit6GohGc/C3G5eD+CJuKK9kQrgOFHUZM3oCkE7D4E7u3S2dWO16wm9ndg9UcQvKjiAd+uLiZPHzCCtztA==",
		"PBKDF2 from passlib": "$pbkdf2-sha256$1000$" + salt + "$.D/INRTtr0yqbH81.dPgJpSVD0iVM15ju0jot8/s1Xc",
		"PBKDF2 from passlib, SHA-512": "$pbkdf2-sha512$1000$" + salt + "$" +
			"CuAMmRTjvXSelU3wb7PUhIO4ft3Z0o3WH/BgKjWMpK3ZpMpRaMrvJeBZ9hjMGoL/Q/Cnu/PrHFoOLfTMa9lXhA",
		"PBKDF2 from passlib, SHA-1": "$pbkdf2$1000$" + salt + "$FHh1apxfwB7pHVam9gzdbYW598I",
		"PHC PBKDF2": "$pbkdf2-sha256$i=1000,l=32$" + salt +
			"$+D/INRTtr0yqbH81+dPgJpSVD0iVM15ju0jot8/s1Xc",
		"PBKDF2 from Django":        "pbkdf2_sha256$1000$seasalt2$H7g0RwoD7RDtwUcGO0xSri+Xz8XqNWjcsB2MyzpwgLU=",
		"PBKDF2 from Django, SHA-1": "pbkdf2_sha1$1000$seasalt2$gGdGj5gX/A1sqTogbtuEq05MBcI=",
		"PBKDF2 from Werkzeug": "pbkdf2:sha256:1000$Ff3s9x$" +
			"4b7bb7102836aab5018674569079d324cbb91dcfb46d3ca46de8f16108c69127",
	}

	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) { testForeign(t, hash, password) })
	}
	t.Run("scrypt from passlib", func(t *testing.T) {
		const hash = "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E"
		testForeign(t, hash, "password")
	})
}

// testForeign shows that a hash is accepted, and that it matches only its own password.
func testForeign(t *testing.T, hash, password string) {
	h := Weak(1)
	if err := CheckHash("hash", hash); err != nil {
		t.Errorf("CheckHash = %v, want nil", err)
	}
	for attempt, want := range map[string]bool{
		password:                  true,
		password + "x":            false,
		password + "\x00":         false,
		strings.ToUpper(password): false,
		"":                        false,
	} {
		if got, err := h.Verify(t.Context(), hash, attempt); err != nil || got != want {
			t.Errorf("Verify(%q) = %v, %v, want %v", attempt, got, err, want)
		}
	}
	if !h.Stale(hash) {
		t.Error("Stale = false, want true for an imported hash")
	}
}

// TestBcryptLong shows that a password does not match if bcrypt would ignore part of it.
func TestBcryptLong(t *testing.T) {
	const hashOf72 = "$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i"
	h := Weak(1)
	for n := 70; n < 80; n++ {
		want := n == 72
		if got, err := h.Verify(t.Context(), hashOf72, strings.Repeat("x", n)); err != nil || got != want {
			t.Errorf("a password of %d bytes matches: %v, %v, want %v", n, got, err, want)
		}
	}
}

// TestCheckHashRefuses shows that hashes are refused if they are malformed or too expensive to
// check.
func TestCheckHashRefuses(t *testing.T) {
	const salt, key = "AAECAwQFBgcICQoLDA0ODw", "3vB4whHS7NUXU6GM+M8u137IcGWy4Ua3FouuuyUplew"

	for _, hash := range []string{
		"$argon2id$v=19$m=4194304,t=1,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=19456,t=4000000,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=65536,t=16,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=19456,t=0,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=19456,t=2,p=255$" + salt + "$" + key,
		"$argon2id$v=19$m=-1,t=2,p=1$" + salt + "$" + key,
		"$argon2i$v=19$m=19456,t=2,p=1$" + salt + "$" + key,
		"$argon2id$v=16$m=19456,t=2,p=1$" + salt + "$" + key,
		"$2a$31$XajjQvNhvvRt5GSeFk1xFe5l47dONXg781AmZtd869sO8zfsHuw7C",
		"$2a$10$short",
		"$2x$10$XajjQvNhvvRt5GSeFk1xFe5l47dONXg781AmZtd869sO8zfsHuw7C",
		"$scrypt$ln=30,r=8,p=1$" + salt + "$" + key,
		"$scrypt$ln=16,r=8,p=64$" + salt + "$" + key,
		"$scrypt$ln=1,r=1073741824,p=1$" + salt + "$" + key,
		"$scrypt$ln=4000000000,r=8,p=1$" + salt + "$" + key,
		"scrypt:1000:8:1$salt$" + strings.Repeat("00", 32),
		"scrypt$salt$1024$8$0$" + key + "=",
		"pbkdf2_sha256$99999999$salt$" + key + "=",
		"pbkdf2_md5$1000$salt$" + key + "=",
		"pbkdf2_sha256$1000$salt$AAAA",
		"$pbkdf2-sha256$1000$$" + key,
		"pbkdf2:sha256:1000$salt$" + strings.Repeat("zz", 32),
		"pbkdf2_sha256$1000$salt$" + strings.Repeat("A", 1000),
		"5f4dcc3b5aa765d61d8327deb882cf99",
		"$1$salt$qJH7.N4xYta3aEG/dfqo/0",
		"password", "$", "$$$$$$$$", "!", "md5$$",
	} {
		if err := CheckHash("hash", hash); err == nil {
			t.Errorf("CheckHash(%.60q) = nil, want an error", hash)
		}
		if got, err := Weak(1).Verify(t.Context(), hash, "password"); err == nil || got {
			t.Errorf("Verify with %.60q = %v, %v, want false and an error", hash, got, err)
		}
	}
}

// TestNoHash shows that no password matches an empty hash, which an account without a password has.
func TestNoHash(t *testing.T) {
	if err := CheckHash("hash", ""); err == nil {
		t.Error("CheckHash of an empty hash = nil, want an error")
	}
	if got, _ := Weak(1).Verify(t.Context(), "", "password"); got {
		t.Error("a password matches an empty hash")
	}
}

func TestStale(t *testing.T) {
	h := New(1)
	hash, err := h.Hash(t.Context(), "fathom lantern")
	if err != nil {
		t.Fatal(err)
	}
	cheap, err := Weak(1).Hash(t.Context(), "fathom lantern")
	if err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		name, hash string
		want       bool
	}{
		{"a new hash", hash, false},
		{"a cheap hash", cheap, true},
		{"an empty hash", "", false},
		{"nonsense", "nonsense", false},
	} {
		if got := h.Stale(tt.hash); got != tt.want {
			t.Errorf("Stale of %s = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func FuzzHash(f *testing.F) {
	for _, prefix := range []string{
		"$argon2id$v=19$m=8,t=1,p=1$",
		"$2a$04$",
		"$scrypt$ln=1,r=1,p=1$",
		"scrypt:2:1:1$",
		"scrypt$s$2$1$1$",
		"$pbkdf2-sha256$1$",
		"pbkdf2:sha1:1$",
		"pbkdf2_sha512$1$",
	} {
		f.Add(prefix + "AAECAwQFBgcICQoLDA0ODw$3vB4whHS7NUXU6GM+M8u137IcGWy4Ua3FouuuyUplew")
	}
	f.Add("$argon2id$" + strings.Repeat("$", 1<<15))
	f.Add("$argon2id$v=19$m=8,t=1,p=1$" + strings.Repeat("A", 200) + "$" + strings.Repeat("A", 200))
	f.Add("$2b$12$" + strings.Repeat("A", 1<<15))

	f.Fuzz(func(t *testing.T, text string) {
		fuzzcost.Parser.Check(t, len(text), func() {
			of, err := read(text)
			if err == nil && (len(of.want) == 0 || of.derive == nil) {
				t.Errorf("%q is read as %s, want a key and a function to derive it", text, fmt.Sprint(of.want))
			}
		})
	})
}
