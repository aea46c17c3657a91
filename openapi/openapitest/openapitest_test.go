package openapitest

import (
	"net/http"
	"strings"
	"testing"
)

// TestCheck shows which responses are accepted, and the errors of the others.
func TestCheck(t *testing.T) {
	const (
		token     = "/api/fabric/embeds/tokens"
		recording = "/2010-04-01/Accounts/a/Recordings/s"
	)
	json := http.Header{"Content-Type": {"application/json; charset=utf-8"}}

	tests := []struct {
		name, method, target string
		status               int
		header               http.Header
		body, want           string
	}{
		{"right", "POST", token, 201, json, `{"token":"x"}`, ""},
		{"a status that is not there", "POST", token, 200, json, `{"token":"x"}`, "not documented"},
		{"a member more", "POST", token, 201, json, `{"token":"x","jti":"y"}`, "jti"},
		{"a member less", "POST", token, 201, json, `{}`, "token"},
		{"a wrong type", "POST", token, 201, json, `{"token":1}`, "want string"},
		{"no JSON", "POST", token, 201, json, `{`, "body"},
		{"another content type", "POST", token, 201, http.Header{"Content-Type": {"text/html"}},
			`{"token":"x"}`, `"text/html"`},
		{"a failure of another shape", "POST", token, 403, json, `{"errors":[]}`, "error"},
		{"a fault that says nothing", "POST", token, 422, json, `{"errors":[]}`, "errors"},
		{"a challenge that is missing", "GET", "/subscriber/info", 401, json, `{"error":"Unauthorized"}`,
			"WWW-Authenticate"},
		{"a body where there is none", "DELETE", "/api/fabric/resources/x", 204, json, `{}`, "none"},
		{"a method that is not there", "DELETE", token, 204, nil, "", "no such operation"},
		{"a method that is refused", "DELETE", token, 405, json, `{"error":"Method Not Allowed"}`, ""},
		{"a path that is not there", "GET", "/api/fabric/none/of/this", 200, json, `{}`, ""},
		{"a query", "POST", token + "?a=b", 201, json, `{}`, "token"},
		{"media", "GET", recording, 200, http.Header{"Content-Type": {"audio/x-wav"}}, "", ""},
		{"media by its ending", "GET", recording + ".wav", 200,
			http.Header{"Content-Type": {"application/json"}}, `{}`, "type"},
		{"a document by its ending", "GET", recording + ".json", 200, json, `{}`, "sid"},
		{"below both prefixes", "GET", "/api/laml" + recording + ".json", 200, json, `{}`, "sid"},
		{"a path that is more exact", "GET", "/api/fabric/resources/subscribers", 200, json, `{"data":[]}`, "links"},
		{"HEAD", "HEAD", recording + ".json", 418, nil, "", "not documented"},
	}

	for _, tt := range tests {
		err := Ours().Check(tt.method, tt.target, tt.status, tt.header, []byte(tt.body))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: Check = %v, want %q", tt.name, err, tt.want)
		}
	}
}
