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
		{"redis://h", location{mode: Single, hosts: []string{"h:6379"}}},
		{"redis://h:7000/3", location{mode: Single, hosts: []string{"h:7000"}, database: 3}},
		{"redis://h/", location{mode: Single, hosts: []string{"h:6379"}}},
		{"redis://[::1]:7000", location{mode: Single, hosts: []string{"[::1]:7000"}}},
		{"redis://[::1]", location{mode: Single, hosts: []string{"[::1]:6379"}}},
		{"redis://:hush@h", location{mode: Single, password: "hush", hosts: []string{"h:6379"}}},
		{"redis://ann:h%40%2F%3Ash@h", location{
			mode:     Single,
			user:     "ann",
			password: "h@/:sh",
			hosts:    []string{"h:6379"},
		}},
		{"redis://ann:hu:sh@h", location{mode: Single, user: "ann", password: "hu:sh", hosts: []string{"h:6379"}}},
		{"redis://h?prefix=one_1-A", location{mode: Single, hosts: []string{"h:6379"}, prefix: "one_1-A:"}},
		{"redis-cluster://a,b:7000,c", location{mode: Cluster, hosts: []string{"a:6379", "b:7000", "c:6379"}}},
		{"redis-cluster://:hush@a:1,b:2/0", location{mode: Cluster, password: "hush", hosts: []string{"a:1", "b:2"}}},
		{"redis-sentinel://main@a,b:7000/2",
			location{mode: Sentinel, master: "main", hosts: []string{"a:26379", "b:7000"}, database: 2}},
		{"redis-sentinel://main:hush@a",
			location{mode: Sentinel, master: "main", password: "hush", hosts: []string{"a:26379"}}},
		{"redis-sentinel://ann:hush@main@a?sentinel_password=hash&sentinel_user=bob",
			location{
				mode:             Sentinel,
				user:             "ann",
				password:         "hush",
				master:           "main",
				hosts:            []string{"a:26379"},
				sentinelUser:     "bob",
				sentinelPassword: "hash",
			}},
	}

	for _, tt := range tests {
		got, err := parse(tt.url)
		tt.want.scheme, _, _ = strings.Cut(tt.url, ":")
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("parse(%q) = %+v, %v, want %+v", tt.url, got, err, tt.want)
		}
		if shown := got.String(); strings.Contains(shown, "hush") || strings.Contains(shown, "ann") {
			t.Errorf("parse(%q) is shown as %s, which contains credentials", tt.url, shown)
		}
	}

	if got, err := parse("rediss://h"); err != nil || got.tls == nil {
		t.Errorf("rediss:// = %+v, %v, want TLS", got, err)
	}
}

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
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("parse(%q) = %v, want %q in it and no password", tt.url, err, tt.want)
		}
	}
}
