package canaries

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A nest holds the secrets of a project.
type nest struct {
	*harness.Project
	secrets    map[string]string
	client     *harness.Client
	subscriber harness.Subscriber
	key        string // API key with all scopes
	sid        string
}

func (n *nest) basic() harness.Option { return harness.Basic(n.ID, n.key) }

const (
	operatorPassword = "canary-operator-loom-4711"
	sipPassword      = "canary-sip-spindle-4712"
	deviceToken      = "canary-device-bobbin-4713"
	newPassword      = "canary-new-shuttle-4714"
	wrongPassword    = "canary-wrong-heddle-4715"
)

// plant creates secrets of every kind and uses each of them as intended.
func plant(t *testing.T, s *harness.Server) *nest {
	t.Helper()
	p := s.NewProject(t)
	n := &nest{Project: p, secrets: map[string]string{}}
	n.key = p.NewKey(t, append(harness.APIScopes, "Management")...)
	n.client = p.NewClient(t, "web", "--first-party")
	n.subscriber = p.NewSubscriber(t)
	add := func(name, secret string) {
		if len(secret) < 16 {
			t.Fatalf("the %s %q is too short to be found", name, secret)
		}
		n.secrets[name] = secret
	}

	add("API key", p.Key)
	add("API key with Management", n.key)
	add("client secret", n.client.Secret)
	add("password", n.subscriber.Password)

	// This login has all kinds of tokens, and a second code, which is not redeemed.
	b := n.client.Browser()
	flow := n.client.NewFlow("openid offline_access")
	used := flow.Code(t, b, n.subscriber)
	var tokens harness.Tokens
	flow.Redeem(t, used).Want(t, 200).Read(t, &tokens)
	add("redeemed code", used)
	add("code", n.client.NewFlow("openid").Code(t, b, n.subscriber))
	add("access token", tokens.AccessToken)
	add("ID token", tokens.IDToken)
	add("rotated refresh token", tokens.RefreshToken)
	var next harness.Tokens
	n.client.Refresh(t, tokens.RefreshToken).Want(t, 200).Read(t, &next)
	add("refresh token", next.RefreshToken)
	n.client.Introspect(t, tokens.AccessToken).Want(t, 200)

	r, err := http.NewRequest(http.MethodGet, s.AuthURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Cookies()(r)
	for _, cookie := range r.Cookies() {
		add("cookie "+cookie.Name, cookie.Value)
	}

	n.plantFabric(t, add)
	n.plantRecording(t, add)
	n.plantKeys(t, add)
	n.plantSessions(t, add)
	n.plantAccounts(t, add)
	return n
}

// plantFabric creates the secrets of the Call Fabric API.
func (n *nest) plantFabric(t *testing.T, add func(name, secret string)) {
	t.Helper()
	sat := n.NewSAT(t, "ada")
	address := n.Address(t, sat.SubscriberID)
	add("SAT", sat.Token)
	add("fabric refresh token", sat.RefreshToken)
	add("guest token", n.NewGuest(t, address).Token)
	add("invite", n.NewInvite(t, sat.Token, address))
	socket, _ := n.Connect(t, sat.Token, "")
	socket.Call(t, "subscriber.online", nil)
	socket.Abandon()

	device := n.Post(t, "/subscriber/devices", harness.Bearer(sat.Token), harness.JSON(map[string]string{
		"device_type":  "Android",
		"device_token": deviceToken,
	})).Want(t, 201).Object(t)
	add("device token", deviceToken)
	add("push key", fmt.Sprint(device["push_notification_key"]))

	n.Post(t, "/api/fabric/resources/subscribers/"+sat.SubscriberID+"/sip_endpoints", n.Basic(),
		harness.JSON(map[string]any{"username": "desk-12", "password": sipPassword})).Want(t, 201)
	newSIPLine(t, n.Server).register("desk-12", sipPassword)
	add("SIP password", sipPassword)

	hook := harness.NewReceiver(t)
	n.Post(t, "/api/fabric/webhooks", n.basic(), harness.JSON(map[string]any{
		"name":   "hook",
		"url":    hook.URL,
		"events": []string{"subscriber.created"},
	})).Want(t, 200, 201)
	keys := n.Get(t, "/api/fabric/webhooks/signing_key", n.basic()).Want(t, 200).Object(t)
	add("webhook signing key", fmt.Sprint(keys["key"]))
	n.NewSubscriber(t)
}

// plantRecording uploads a recording and creates a link to it.
func (n *nest) plantRecording(t *testing.T, add func(name, secret string)) {
	t.Helper()
	n.sid = n.Upload(t, harness.Tone(8000, 8))
	add("recording Sid", n.sid)
	n.CLI(t, "", "project", "update", n.ID, "--media-auth", "signed")
	harness.Eventually(t, time.Minute, "the media to require a link", func() error {
		return n.Get(t, n.LaML("/Recordings/"+n.sid+".wav")).StatusIs(401)
	})
	link, err := url.Parse(fmt.Sprint(n.CLI(t, "", "recording", "link", n.sid, "--expires-in", "10m")["url"]))
	if err != nil {
		t.Fatal(err)
	}
	add("signature of a link", link.Query().Get("sig"))
	n.Get(t, n.LaML("/Recordings/"+n.sid+".wav?"+link.RawQuery)).Want(t, 200)
	n.Get(t, n.LaML("/Recordings/"+n.sid+".mp3"), n.Basic()).Want(t, 200)
}

// plantAccounts signs an operator in, enters a wrong password for the subscriber, and sets a new
// one.
func (n *nest) plantAccounts(t *testing.T, add func(name, secret string)) {
	t.Helper()
	n.CLI(t, operatorPassword, "operator", "create", "--email", "op@example.com", "--role", "owner",
		"--password-stdin")
	b := n.Browser()
	b.Submit(t, b.Open(t, "/dashboard"), "login-submit", map[string]string{"username": "op@example.com",
		"password": operatorPassword})
	add("operator's password", operatorPassword)
	r, err := http.NewRequest(http.MethodGet, n.PublicURL+"/dashboard", nil)
	if err != nil {
		t.Fatal(err)
	}

	b.Cookies()(r)
	for _, cookie := range r.Cookies() {
		if cookie.Value != n.ID { // one cookie contains the ID of the project that the operator opened last
			add("operator's cookie "+cookie.Name, cookie.Value)
		}
	}

	page := n.client.Browser().Open(t, n.client.NewFlow("openid").URL())
	other := n.client.Browser()
	other.Submit(t, other.Open(t, n.client.NewFlow("openid").URL()), "login-submit", map[string]string{
		"username": n.subscriber.Email,
		"password": wrongPassword,
	})
	add("wrong password", wrongPassword)
	if !page.Has("login-submit") {
		t.Fatalf("there is no login form: %s", page.Body)
	}

	n.Do(t, "PUT", "/api/fabric/resources/subscribers/"+n.subscriber.ID, n.basic(),
		harness.JSON(map[string]string{"password": newPassword})).Want(t, 200)
	add("new password", newPassword)
}

// forms returns the forms in which a secret may appear, by name.
func forms(secret string) map[string]string {
	all := map[string]string{
		"unchanged":      secret,
		"in hexadecimal": hex.EncodeToString([]byte(secret)),
		"in base64":      strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "="),
		"in base64url":   base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"URL-encoded":    url.QueryEscape(secret),
	}
	if parts := strings.Split(secret, "."); len(parts) > 2 { // a token, whose header is not secret
		for i, part := range parts[1:] {
			if len(part) >= 20 {
				all[fmt.Sprintf("its part %d", i+2)] = part
			}
		}
	}
	return all
}

// ownPath matches the field of a page's language form that contains the page's own URL, and so the
// path that the client requested.
var ownPath = regexp.MustCompile(`name="back" value="[^"]*"`)

// spray sends each secret to places where it does not belong, and returns the responses by request.
func (n *nest) spray(t *testing.T) map[string][]byte {
	t.Helper()
	answers := map[string][]byte{}
	for name, secret := range n.secrets {
		escaped := url.QueryEscape(secret)
		paths := []string{
			"/?q=" + escaped, "/nothing/" + url.PathEscape(secret), "/login?id=" + escaped, "/reset?token=" + escaped,
			"/verify?token=" + escaped, "/login/oauth/authorize?client_id=" + escaped + "&redirect_uri=" + escaped,
			"/oauth/logout?id_token_hint=" + escaped, "/api/fabric/resources?page_token=" + escaped,
			"/api/fabric/resources/" + url.PathEscape(secret), "/dashboard?" + escaped, "/device?user_code=" + escaped,
			"/api/laml/2010-04-01/Accounts/" + url.PathEscape(secret) + "/Recordings", "/account?project=" + escaped,
		}
		for _, path := range paths {
			for how, o := range map[string]harness.Option{
				"":                    func(*http.Request) {},
				" with a key":         n.basic(),
				" with it as a token": harness.Bearer(secret),
				" with it as a key":   harness.Basic(n.ID, secret),
			} {
				a, err := n.Try("GET", path, o)
				if err != nil {
					t.Fatal(err)
				}
				if a.Status/100 == 3 {
					continue // a redirect to the login page repeats the path
				}
				what := "the answer to GET " + strings.ReplaceAll(path, escaped, "SECRET") + how
				answers[what+" of the "+name] = ownPath.ReplaceAll(a.Body, nil)
			}
		}

		for _, path := range []string{"/oauth/token", "/oauth/introspect", "/oauth/device_authorization",
			"/api/fabric/subscribers/tokens/refresh", "/api/fabric/guests/tokens"} {
			for how, o := range map[string]harness.Option{
				"form": harness.Form(url.Values{
					"grant_type":    {secret},
					"client_id":     {secret},
					"client_secret": {secret},
					"token":         {secret},
					"refresh_token": {secret},
					"code":          {secret},
				}),
				"JSON": harness.JSON(map[string]any{
					"refresh_token":     secret,
					secret:              secret,
					"allowed_addresses": secret,
				}),
				"broken": harness.JSON(`{"` + secret),
			} {
				a, err := n.Try("POST", path, o, n.basic(), harness.Header("X-Forwarded-For", secret),
					harness.Header("Cookie", "selvage="+secret+"; selvage-device="+secret))
				if err != nil {
					t.Fatal(err)
				}
				answers["the answer to POST "+path+" with a "+how+" of the "+name] = a.Body
			}
		}

		socket, _ := n.Dial(t)
		if socket != nil {
			socket.Call(t, "signalwire.connect", map[string]any{
				"authentication": map[string]any{"jwt_token": "x" + secret},
				secret:           secret,
			})
			socket.Abandon()
		}
	}
	return answers
}
