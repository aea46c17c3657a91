package attack

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A refusal is a request that an API must refuse, and what the response and the log must contain.
type refusal struct {
	method, target string
	opts           []harness.Option
	status         int
	body           string // part of the response body, in the format of the API
	cause          string // part of the cause in the log
}

// TestRefusalLog shows that each API logs its refusals at the default level. Each log line has the
// ID of the request, the status, and a cause that clients do not see. The log contains no
// credentials.
func TestRefusalLog(t *testing.T) {
	s := harness.StartConfig(t, harness.Config{
		Env: []string{"SELVAGE_LIMITS__MEDIA_MISSES_PER_NETWORK=1", "SELVAGE_LIMITS__TOKEN_PER_CLIENT=3"}})
	p, other := s.NewProject(t), s.NewProject(t)
	service, second := p.NewClient(t, "service"), p.NewClient(t, "service")
	var tokens harness.Tokens
	service.Token(t, url.Values{"grant_type": {"client_credentials"}}).Want(t, 200).Read(t, &tokens)

	const fabric, relay = "/api/fabric/resources/subscribers", "/api/relay/rest/recordings"
	noVoice := harness.Basic(p.ID, p.NewKey(t, "messaging"))
	voice := harness.Basic(p.ID, p.NewKey(t, "voice"))
	media := p.LaML("/Recordings/4d0d4a42-0000-4000-8000-000000000001.wav")
	rule := harness.JSON(map[string]any{"days": 9})
	s.Post(t, relay+"/retention", p.Basic(), rule).Want(t, 201)

	code := harness.Form(url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {"hush-code"},
		"redirect_uri":  {harness.RedirectURI},
		"code_verifier": {strings.Repeat("v", 43)},
	})
	wrong := harness.Basic(service.ID, "hush-secret")
	odd := harness.Form(url.Values{"grant_type": {"hush-grant"}})

	for _, r := range []refusal{
		{"GET", fabric, nil, 401, `{"error":"Unauthorized"}`, "neither an API key nor a token"},
		{"GET", fabric, []harness.Option{harness.Basic(p.ID, "PThush")}, 401, `"Unauthorized"`,
			"the API key is unknown"},
		{"GET", fabric, []harness.Option{harness.Basic(other.ID, p.Key)}, 401, `"Unauthorized"`, "another project"},
		{"GET", fabric, []harness.Option{harness.Bearer("hush..token")}, 401, `"Unauthorized"`,
			"no key of this server opens the token"},
		{"POST", "/api/project/ingest_keys", []harness.Option{voice, harness.JSON(map[string]any{"name": "x"})},
			401, `"Unauthorized"`, "lack the scope"},
		{"GET", fabric + "/4d0d4a42-0000-4000-8000-000000000001", []harness.Option{p.Basic()}, 404,
			`{"error":"Not Found"}`, "subscriber not found"},
		{"POST", fabric, []harness.Option{p.Basic(), harness.JSON(map[string]any{"email": 1})}, 422,
			`"validation_error"`, "email"},
		{"PATCH", "/api/fabric/addresses", []harness.Option{p.Basic()}, 405, `"error"`, "does not take the method"},
		{"GET", "/api/nowhere", nil, 404, `{"error":"Not Found"}`, "no such path"},

		{"GET", p.LaML("/Recordings"), nil, 401, `"code":20003`, "neither an API key nor a token"},
		{"GET", p.LaML("/Recordings"), []harness.Option{noVoice}, 401, `"code":20003`, "lacks the scope Voice"},
		{"GET", media, nil, 404, `"code":20404`, "not found"},
		{"GET", media, nil, 429, `"code":20429`, "too many"},
		{"PUT", p.LaML("/Recordings"), []harness.Option{p.Basic()}, 405, `"code":20405`, "does not take the method"},

		{"GET", relay, nil, 401, `"Unauthorized"`, "neither an API key nor a token"},
		{"POST", relay + "/retention", []harness.Option{p.Basic(), rule}, 409, `"Conflict"`, "a rule"},
		{"POST", relay + "/retention", []harness.Option{p.Basic(), harness.JSON(map[string]any{"days": -1})}, 422,
			`"Invalid parameter"`, "days"},

		{"GET", "/oauth/userinfo", []harness.Option{harness.Bearer(tokens.AccessToken)}, 403, `"insufficient_scope"`,
			"openid"},
		{"GET", "/oauth/userinfo", nil, 401, `"invalid_token"`, "no token was sent"},
		{"POST", "/oauth/token", []harness.Option{wrong, code}, 401, `"invalid_client"`, "the client secret is wrong"},
		{"POST", "/oauth/token", []harness.Option{wrong, odd}, 400, `"unsupported_grant_type"`, "grant type"},
		{"POST", "/oauth/token", []harness.Option{wrong, code}, 429, `"slow_down"`, "too many"},
		{"GET", "/oauth/token", nil, 405, `"invalid_request"`, "method"},
		{"POST", "/oauth/revoke", []harness.Option{harness.Basic(second.ID, second.Secret),
			harness.Form(url.Values{})}, 400, `"invalid_request"`, ""},
		{"POST", "/oauth/register", []harness.Option{harness.Bearer("hush"), harness.JSON(map[string]any{})}, 401,
			`"invalid_token"`, "token"},
	} {
		checkRefusal(t, s, r)
	}

	if strings.Contains(s.Log(), "hush") || strings.Contains(s.Log(), p.Key) {
		t.Errorf("the log contains credentials:\n%s", s.Log())
	}
}

// checkRefusal sends a request, and checks the response and its line in the log. If a limit must
// refuse the request, checkRefusal may repeat it, because the limit permits another request after
// some time.
func checkRefusal(t *testing.T, s *harness.Server, r refusal) {
	t.Helper()
	a := s.Do(t, r.method, r.target, r.opts...)
	for range 5 {
		if r.status == http.StatusTooManyRequests && a.Status != r.status {
			a = s.Do(t, r.method, r.target, r.opts...)
		}
	}
	id := a.Header.Get("X-Request-Id")
	if a.Status != r.status || !strings.Contains(string(a.Body), r.body) || id == "" {
		t.Errorf("%s %s = %d %s with the request ID %q, want %d with %s", r.method, r.target, a.Status,
			a.Body, id,
			r.status, r.body)
		return
	}

	var line struct {
		Level, Msg, Method, Route, Cause string
		Status                           int
	}
	harness.Eventually(t, time.Minute, "the request to be logged", func() error {
		for text := range strings.Lines(s.Log()) {
			if strings.Contains(text, id) && strings.Contains(text, `"msg":"request"`) {
				return json.Unmarshal([]byte(text), &line)
			}
		}
		return errors.New("no line of the log contains the request ID " + id)
	})
	if line.Level != "INFO" || line.Status != r.status || line.Method != r.method || line.Cause == "" ||
		!strings.Contains(line.Cause, r.cause) {
		t.Errorf("%s %s = %d: the log says %+v, want the cause %q", r.method, r.target, r.status, line, r.cause)
	}
}
