package redis

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		url  string
		want location
	}{
		{
			url:  "redis://h",
			want: location{mode: Single, hosts: []string{"h:6379"}},
		},
		{
			url:  "redis://h:7000/3",
			want: location{mode: Single, hosts: []string{"h:7000"}, database: 3},
		},
		{
			url:  "redis://h/",
			want: location{mode: Single, hosts: []string{"h:6379"}},
		},
		{
			url:  "redis://[::1]:7000",
			want: location{mode: Single, hosts: []string{"[::1]:7000"}},
		},
		{
			url:  "redis://[::1]",
			want: location{mode: Single, hosts: []string{"[::1]:6379"}},
		},
		{
			url:  "redis://:hush@h",
			want: location{mode: Single, password: "hush", hosts: []string{"h:6379"}},
		},
		{
			url:  "redis://ann:h%40%2F%3Ash@h",
			want: location{mode: Single, user: "ann", password: "h@/:sh", hosts: []string{"h:6379"}},
		},
		{
			url:  "redis://ann:hu:sh@h",
			want: location{mode: Single, user: "ann", password: "hu:sh", hosts: []string{"h:6379"}},
		},
		{
			url:  "redis://h?prefix=one_1-A",
			want: location{mode: Single, hosts: []string{"h:6379"}, prefix: "one_1-A:"},
		},
		{
			url:  "redis-cluster://a,b:7000,c",
			want: location{mode: Cluster, hosts: []string{"a:6379", "b:7000", "c:6379"}},
		},
		{
			url:  "redis-cluster://:hush@a:1,b:2/0",
			want: location{mode: Cluster, password: "hush", hosts: []string{"a:1", "b:2"}},
		},
		{
			url:  "redis-sentinel://main@a,b:7000/2",
			want: location{mode: Sentinel, master: "main", hosts: []string{"a:26379", "b:7000"}, database: 2},
		},
		{
			url:  "redis-sentinel://main:hush@a",
			want: location{mode: Sentinel, master: "main", password: "hush", hosts: []string{"a:26379"}},
		},
		{
			url: "redis-sentinel://ann:hush@main@a?sentinel_password=hash&sentinel_user=bob",
			want: location{
				mode:             Sentinel,
				user:             "ann",
				password:         "hush",
				master:           "main",
				hosts:            []string{"a:26379"},
				sentinelUser:     "bob",
				sentinelPassword: "hash",
			},
		},
	}

	for _, tt := range tests {
		tt.want.scheme, _, _ = strings.Cut(tt.url, ":")
		got, err := parse(tt.url)
		if err != nil {
			t.Errorf("parse(%q): %v", tt.url, err)
			continue
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("parse(%q) = %+v, want %+v", tt.url, got, tt.want)
		}
		for _, secret := range []string{"hush", "ann"} {
			if text := got.String(); strings.Contains(text, secret) {
				t.Errorf("String of %q = %s, want it without %q", tt.url, text, secret)
			}
		}
	}

	if got, err := parse("rediss://h"); err != nil || got.tls == nil {
		t.Errorf("parse(rediss://h) = %+v, %v, want a TLS configuration", got, err)
	}
}

// TestParseRefuses shows the errors for invalid URLs, and that they contain no password.
func TestParseRefuses(t *testing.T) {
	tests := []struct{ url, want string }{
		{"", "begins with redis://"},
		{"redis:h", "begins with redis://"},
		{"rediscluster://h", "begins with redis://"},
		{"http://:hush@h", "begins with redis://"},
		{"redis://", "needs a host"},
		{"redis://h:0", "from 1 to 65535"},
		{"redis://h:hush", "from 1 to 65535"},
		{"redis://:hush/@h", "in a password, write / ? # @ : % as"},
		{"redis://:hu%sh@h", "are invalid"},
		{"redis://hush@h", "a user without a password"},
		{"redis://ann:@h", "are invalid"},
		{"redis://a,b", "several hosts"},
		{"redis-cluster://a,,b", "needs a host"},
		{"redis-cluster://a/1", "a Cluster has only one database"},
		{"redis://h/hush", "must end in a database number"},
		{"redis://h/99999", "must end in a database number"},
		{"redis-sentinel://a:26379", "lacks the master's name"},
		{"redis-sentinel://ann:hush@@a", "lacks the master's name"},
		{"redis://h?timeout=hush", "an unknown parameter; known are ca, cert"},
		{"redis://:x?hush@h", "in a password, write / ? # @ : % as"},
		{"redis://ann:1?hush@h", "an unknown parameter"},
		{"redis://h?ca=x", "is for TLS"},
		{"redis://h?sentinel_password=hush", "belongs to redis-sentinel"},
		{"rediss://h?ca=/nowhere", "reading the ca"},
		{"rediss://h?ca=url.go", "no PEM certificate"},
		{"rediss://h?cert=url.go", "both cert and key"},
		{"rediss://h?ca=a&ca=b", "needs exactly one value"},
		{"redis://h?prefix=", "needs exactly one value"},
		{"redis-cluster://h?prefix=a{hush}", "1 to 32 letters, digits, - and _"},
		{"redis://h?prefix=a:hush", "1 to 32 letters"},
		{"redis://h?prefix=" + strings.Repeat("a", 33), "1 to 32 letters"},
	}

	for _, tt := range tests {
		_, err := parse(tt.url)
		if err == nil {
			t.Errorf("parse(%q) succeeds, want an error", tt.url)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("parse(%q) = %v, want an error that contains %q", tt.url, err, tt.want)
		}
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("parse(%q) = %v, want an error without the password", tt.url, err)
		}
	}
}
