package config

import (
	"strings"
	"testing"
)

// TestBackendURLs shows which URLs the database and the sessions accept, and with which errors they
// reject the others.
func TestBackendURLs(t *testing.T) {
	const (
		database = "sqlite:FILE or postgres://USER@HOST/NAME"
		sessions = "redis-cluster://HOST:6379,HOST:6379"
	)
	tests := []struct {
		url                string
		database, sessions string // expected part of the error; "" for none
	}{
		{"sqlite:selvage.db", "", ""},
		{"sqlite:/srv/selvage.db", "", ""},
		{"sqlite:///srv/selvage.db", "", ""},
		{"postgres://u@h/db", "", ""},
		{"postgresql://u:p%2F@a:5432,b:5433/db?sslmode=require", "", ""},
		{"postgres:///db?host=/run/postgresql", "", ""},
		{"postgres://u@[::1]:5432/db", "", ""},
		{"redis://h", "Redis can hold sessions", ""},
		{"rediss://u:p@h:6379/2", "Redis can hold sessions", ""},
		{"redis-cluster://a:6379,b:6379", "Redis can hold sessions", ""},
		{"redis-sentinel://main@a:26379,b:26379/1", "Redis can hold sessions", ""},

		{"", database, sessions},
		{"selvage.db", database, sessions},
		{"sqlite:", database, sessions},
		{"sqlite://selvage.db", "without slashes", "without slashes"},
		{"sqlite3:selvage.db", `did you mean "sqlite:"?`, `did you mean "sqlite:"?`},
		{"mysql://h/db", database, sessions},
		{"postgers://h/db", `did you mean "postgres:"?`, `did you mean "postgres:"?`},
		{"pgsql://h/db", `did you mean "postgres:"?`, `did you mean "postgres:"?`},
		{"valkey://h", database, `did you mean "redis:"?`},
		{"redis+sentinel://main@h", database, `did you mean "redis-sentinel:"?`},
		{"postgres:h/db", "postgres:// with two slashes", "postgres:// with two slashes"},
		{"postgres://h:port/db", "cannot be used: ", "cannot be used: "},
		{"postgres://u:hush/b@h/db", "with special characters as %XX", "with special characters as %XX"},
		{"postgres://u:100%hush@h/db", "with special characters as %XX", "with special characters as %XX"},
		{"postgres://u:hush@h/db?sslmode=hush", "cannot be used: ", "cannot be used: "},
		{"redis://", "Redis can", "cannot be used: the Redis URL needs a host"},
		{"redis-sentinel://a:26379", "Redis can", "MASTER@HOST"},
	}
	for _, tt := range tests {
		t.Run(tt.url, func(t *testing.T) {
			var d DatabaseURL
			wantUnusable(t, "database", d.UnmarshalText([]byte(tt.url)), tt.database)
			var s SessionsURL
			wantUnusable(t, "sessions", s.UnmarshalText([]byte(tt.url)), tt.sessions)
		})
	}
}

// wantUnusable checks the error for a URL. The error must not contain the password "hush".
func wantUnusable(t *testing.T, key string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v, want nil", key, err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%s: %v, want an error with %q", key, err, want)
	}
	if strings.Contains(err.Error(), "hush") {
		t.Errorf("%s: the error %q contains the password", key, err)
	}
}

// TestRedact shows which parts of a URL are hidden.
func TestRedact(t *testing.T) {
	tests := []struct{ url, want string }{
		{"sqlite:selvage.db", "sqlite:selvage.db"},
		{"http://localhost:8080", "http://localhost:8080"},
		{"postgres://u@h/db", "postgres://u@h/db"},
		{"postgres://u:hush@h/db", "postgres://u:xxxxx@h/db"},
		{"postgres://u:hush@a:5432,b:5433/db?sslmode=require", "postgres://u:xxxxx@a:5432,b:5433/db?sslmode=require"},
		{"postgres://h/db?user=u&password=hush&sslpassword=hush",
			"postgres://h/db?user=u&password=xxxxx&sslpassword=xxxxx"},
		{"postgres://h:5432/db?password=hush@hush", "postgres://h:5432/db?password=xxxxx"},
		{"postgres://u:hu/s@h?@h/db", "postgres://u:xxxxx@h/db"},
		{"redis://:hush@h:6379/0", "redis://:xxxxx@h:6379/0"},
		{"redis-sentinel://main@h:26379?sentinel_password=hush",
			"redis-sentinel://main@h:26379?sentinel_password=xxxxx"},
	}
	for _, tt := range tests {
		if got := Redact(tt.url); got != tt.want {
			t.Errorf("Redact(%q) = %q, want %q", tt.url, got, tt.want)
		}
	}
}

// FuzzRedact shows that Redact hides the password before the hosts of any URL.
func FuzzRedact(f *testing.F) {
	f.Add("postgres", "u", "p", "h:1,g:2/db?x=y")
	f.Fuzz(func(t *testing.T, scheme, user, secret, rest string) {
		const marked = "\x00hush\x00"
		if strings.ContainsAny(scheme+user, "?&:@/") || strings.Contains(rest, "@") {
			return
		}
		got := Redact(scheme + "://" + user + ":" + secret + marked + "@" + rest)
		if strings.Contains(got, marked) {
			t.Errorf("Redact = %q, which contains the password", got)
		}
	})
}
