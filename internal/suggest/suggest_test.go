package suggest

import "testing"

func TestDidYouMean(t *testing.T) {
	names := []string{"database", "data", "listen", "listen_tls", "log"}

	tests := []struct{ name, want string }{
		{"databse", "database"},
		{"lsiten", "listen"},
		{"Listen", "listen"},
		{"listen_tsl", "listen_tls"},
		{"dta", "data"},
		{"zebra", ""},
		{"", ""},
	}

	for _, tt := range tests {
		want := ""
		if tt.want != "" {
			want = `; did you mean "` + tt.want + `"?`
		}
		if got := Meant(tt.name, names); got != want {
			t.Errorf("Meant(%q) = %q, want %q", tt.name, got, want)
		}
	}
}
