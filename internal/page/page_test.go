package page_test

import (
	"testing"

	"github.com/selvage/selvage/internal/page"
)

func TestParseToken(t *testing.T) {
	const id = "01a1fc6a-03f9-7c7a-88db-3475f31c1678"
	for token, want := range map[string]string{
		page.Token(id):                           id,
		"PA01A1FC6A-03F9-7C7A-88DB-3475F31C1678": id,
		page.Token("my-app.v2"):                  "my-app.v2",
	} {
		if got, ok := page.ParseToken(token); !ok || got != want {
			t.Errorf("ParseToken(%q) = %q, %t, want %q", token, got, ok, want)
		}
	}

	for _, token := range []string{
		id,
		"PA",
		"PA:",
		"PA:' OR 1=1 --",
		"PA" + id + "x",
		"PA{" + id + "}",
		"PAurn:uuid:" + id,
		"PA01a1fc6a03f97c7a88db3475f31c1678",
		"PA' OR 1=1 -- 01a1fc6a-03f9-7c7a-88d",
	} {
		if got, ok := page.ParseToken(token); ok {
			t.Errorf("ParseToken(%q) = %q, want it refused", token, got)
		}
	}
}
