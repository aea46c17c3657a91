package attack

import (
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestJ13GuestToken shows that a guest token can only read the addresses that it was issued for.
func TestJ13GuestToken(t *testing.T) {
	p := project(t)
	sat, other := p.NewSAT(t, "ada"), p.NewSAT(t, "grace")
	mine, theirs := p.Address(t, sat.SubscriberID), p.Address(t, other.SubscriberID)
	guest := harness.Bearer(p.NewGuest(t, mine).Token)

	p.Get(t, "/subscriber/info", guest).Want(t, 401, 403)
	p.Get(t, "/api/fabric/subscriber/info", guest).Want(t, 401, 403)
	p.Post(t, "/api/fabric/subscriber/invites", guest,
		harness.JSON(map[string]string{"address_id": mine})).Want(t, 401, 403)
	p.Post(t, "/api/fabric/guests/tokens", guest,
		harness.JSON(map[string][]string{"allowed_addresses": {mine}})).Want(t, 401, 403)
	p.Post(t, "/api/fabric/subscribers/tokens", guest,
		harness.JSON(map[string]string{"reference": "ada"})).Want(t, 401, 403)
	p.Get(t, "/oauth/userinfo", guest).Want(t, 401, 403)
	p.Get(t, p.LaML("/Recordings"), guest).Want(t, 401)

	var list struct{ Data []struct{ ID string } }
	p.Get(t, "/api/fabric/addresses", guest).Want(t, 200).Read(t, &list)
	if len(list.Data) != 1 || list.Data[0].ID != mine {
		t.Errorf("the guest sees the addresses %v, want only %s", list.Data, mine)
	}
	p.Get(t, "/api/fabric/addresses/"+mine, guest).Want(t, 200)
	p.Get(t, "/api/fabric/addresses/"+theirs, guest).Want(t, 404)
}

// TestJ14WrongCredentials shows that endpoints refuse credentials of the wrong kind.
func TestJ14WrongCredentials(t *testing.T) {
	p := project(t)
	sat := p.NewSAT(t, "ada")
	address := p.Address(t, sat.SubscriberID)
	tokens := map[string]string{
		"SAT":    sat.Token,
		"guest":  p.NewGuest(t, address).Token,
		"invite": p.NewInvite(t, sat.Token, address),
	}

	for kind, token := range tokens {
		t.Run(kind, func(t *testing.T) {
			by := harness.Bearer(token)
			p.Post(t, "/api/fabric/subscribers/tokens", by,
				harness.JSON(map[string]string{"reference": "ada"})).WantUnauthorized(t)
			p.Post(t, "/api/fabric/subscribers/tokens/refresh", by,
				harness.JSON(map[string]string{"refresh_token": sat.RefreshToken})).WantUnauthorized(t)
			p.Get(t, "/api/fabric/resources/subscribers", by).WantUnauthorized(t)
			p.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sat.SubscriberID, by).WantUnauthorized(t)
			p.Get(t, p.LaML("/Recordings"), by).Want(t, 401)
			p.Post(t, p.LaML("/Recordings"), by, harness.Body("audio/wav", harness.Tone(800, 8))).Want(t, 401)
			p.Get(t, "/api/fabric/resources/subscribers", harness.Basic(p.ID, token)).WantUnauthorized(t)
		})
	}

	for _, path := range []string{"/api/fabric/addresses", "/api/fabric/addresses/" + address,
		"/subscriber/info", "/api/fabric/subscriber/info"} {
		p.Get(t, path, p.Basic()).WantUnauthorized(t)
		p.Get(t, path, harness.Bearer(p.Key)).WantUnauthorized(t)
	}
	p.Post(t, "/api/fabric/subscriber/invites", p.Basic(),
		harness.JSON(map[string]string{"address_id": address})).WantUnauthorized(t)
}

// protected lists routes that require credentials.
var protected = []struct{ method, path string }{
	{"GET", "/api/fabric/addresses"}, {"GET", "/api/fabric/addresses/x"}, {"POST", "/api/fabric/guests/tokens"},
	{"GET", "/api/fabric/resources/subscribers"}, {"POST", "/api/fabric/resources/subscribers"},
	{"POST", "/api/fabric/subscribers"},
	{"GET", "/api/fabric/resources/subscribers/x"}, {"PUT", "/api/fabric/resources/subscribers/x"},
	{"DELETE", "/api/fabric/resources/subscribers/x"},
	{"GET", "/api/fabric/resources/subscribers/x/addresses"}, {"POST", "/api/fabric/subscriber/invites"},
	{"POST", "/api/fabric/subscribers/tokens"},
	{"POST", "/api/fabric/subscribers/tokens/refresh"}, {"GET", "/subscriber/info"},
	{"GET", "/api/fabric/subscriber/info"},
	{"GET", "/api/project/tokens"}, {"POST", "/api/project/tokens"}, {"GET", "/api/project/tokens/x"},
	{"PATCH", "/api/project/tokens/x"},
	{"DELETE", "/api/project/tokens/x"}, {"POST", "/api/project/tokens/x/rotate"},
	{"GET", "/api/fabric/resources/subscribers/x/sessions"},
	{"GET", "/api/fabric/resources/subscribers/x/consents"},
	{"DELETE", "/api/fabric/resources/subscribers/x/consents/x"},
	{"DELETE", "/api/fabric/resources/subscribers/x/sessions/x"},
	{"GET", "/api/fabric/resources/subscribers/x/tokens"},
	{"DELETE", "/api/fabric/resources/subscribers/x/tokens"}, {"GET", "/api/fabric/resources/subscribers/x/presence"},
}

// TestK01NoCredentials shows that every protected route refuses missing, malformed and foreign
// credentials. Each refusal contains a challenge.
func TestK01NoCredentials(t *testing.T) {
	p := project(t)
	stranger := project(t)
	for _, route := range protected {
		t.Run(route.method+" "+route.path, func(t *testing.T) {
			for _, opts := range [][]harness.Option{
				{}, {harness.Header("Authorization", "")}, {harness.Header("Authorization", "Basic")},
				{harness.Header("Authorization", "Basic !!")},
				{harness.Header("Authorization", "Token "+p.Key)}, {harness.Basic(p.ID, "")},
				{harness.Basic("", p.Key)}, {harness.Basic(p.ID, "PTwrong")},
				{harness.Basic(p.ID, stranger.Key)}, {harness.Basic(stranger.ID, p.Key)},
				{harness.Basic(p.ID+"\x00", p.Key)}, {harness.Basic("' OR 1=1--", p.Key)},
				{harness.Bearer("x")}, {harness.Bearer(p.Key)},
				{p.Basic(), harness.AddHeader("Authorization", "Basic x")},
			} {
				a := p.Do(t, route.method, route.path, append(opts, harness.JSON("{}"))...).WantUnauthorized(t)
				if a.Header.Get("WWW-Authenticate") == "" {
					t.Error("the 401 response has no WWW-Authenticate header")
				}
			}
		})
	}

	// A caller without credentials cannot find out which routes exist.
	p.Get(t, "/api/fabric/no/such/route").WantUnauthorized(t)
	p.Get(t, "/api/fabric/no/such/route", p.Basic()).WantError(t, 404, "Not Found")
}

// TestK02MissingScope shows that a key is refused for anything outside the scopes that it was
// created with.
func TestK02MissingScope(t *testing.T) {
	p := project(t)
	sid := p.Upload(t, harness.Tone(8000, 8))
	messaging := harness.Basic(p.ID, p.NewKey(t, "Messaging"))
	management := harness.Basic(p.ID, p.NewKey(t, "Management"))
	voice := harness.Basic(p.ID, p.NewKey(t, "calling"))

	for _, key := range []harness.Option{messaging, management} {
		p.Get(t, p.LaML("/Recordings"), key).Want(t, 401)
		p.Get(t, p.LaML("/Recordings/"+sid+".json"), key).Want(t, 401)
		p.Post(t, p.LaML("/Recordings"), key, harness.Body("audio/wav", harness.Tone(800, 8))).Want(t, 401)
		p.Do(t, "DELETE", p.LaML("/Recordings/"+sid), key).Want(t, 401)
	}

	p.Get(t, p.LaML("/Recordings/"+sid+".json"), voice).Want(t, 200)
	p.Get(t, "/api/fabric/resources/subscribers", messaging).Want(t, 200)
	p.Get(t, "/api/fabric/resources/subscribers", voice).Want(t, 200)
	p.Get(t, "/api/fabric/resources/subscribers", management).WantUnauthorized(t)
	p.Post(t, "/api/fabric/subscribers/tokens", management,
		harness.JSON(map[string]string{"reference": "eve"})).WantUnauthorized(t)

	var list struct{ Data []any }
	p.Get(t, "/api/fabric/resources/subscribers", p.Basic()).Want(t, 200).Read(t, &list)
	if len(list.Data) != 0 {
		t.Errorf("a refused request created %v", list.Data)
	}
}

// TestK06Export uses a key that may manage the project but may not fetch recordings. An export of a
// subscriber contains no complete Sid, because a Sid is enough to fetch public media. An erasure is
// refused.
func TestK06Export(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	sid := p.Post(t, p.LaML("/Recordings?SubscriberId="+sub.ID), p.Basic(),
		harness.Body("audio/wav", harness.Tone(800, 8))).Want(t, 201).Object(t)["sid"].(string)
	const pushToken = "push-token-that-is-a-secret"
	p.Post(t, "/subscriber/devices", harness.Bearer(p.NewSAT(t, sub.Email).Token), harness.JSON(map[string]string{
		"device_type":  "iOS",
		"device_token": pushToken,
		"device_name":  "Phone",
	})).Want(t, 201)

	path := "/api/fabric/resources/subscribers/" + sub.ID
	manager := harness.Basic(p.ID, p.NewKey(t, "Management"))
	both := harness.Basic(p.ID, p.NewKey(t, "Management", "Voice"))
	body := string(p.Get(t, path+"/export", manager).Want(t, 200).Body)
	if strings.Contains(body, sid) || !strings.Contains(body, sid[:8]) {
		t.Errorf("the export by a key without Voice has the complete Sid %s, or no Sid: %s", sid, body)
	}
	p.Post(t, path+"/erase", manager).WantUnauthorized(t)
	p.Get(t, p.LaML("/Recordings/"+sid+".json"), p.Basic()).Want(t, 200)

	// A key with Voice gets the Sid, but no key gets a push token.
	body = string(p.Get(t, path+"/export", both).Want(t, 200).Body)
	if !strings.Contains(body, sid) || strings.Contains(body, pushToken) {
		t.Errorf("the export by a key with Voice lacks the Sid %s, or has a push token: %s", sid, body)
	}
	p.Post(t, path+"/erase", both).Want(t, 200)
}

// TestK06AccountData downloads a subscriber's data from the account page. The file contains no
// complete Sid, because nobody who has the file may fetch recordings with it.
func TestK06AccountData(t *testing.T) {
	p := project(t)
	sub := p.NewSubscriber(t)
	sid := p.Post(t, p.LaML("/Recordings?SubscriberId="+sub.ID), p.Basic(),
		harness.Body("audio/wav", harness.Tone(800, 8))).Want(t, 201).Object(t)["sid"].(string)

	b := p.Browser()
	page := b.Submit(t, b.Open(t, "/account?project="+p.ID), "login-submit",
		map[string]string{"username": sub.Email, "password": sub.Password})
	data := string(b.Submit(t, page, "data-download", nil).Want(t, 200).Body)
	if strings.Contains(data, sid) || !strings.Contains(data, sid[:8]) {
		t.Errorf("the data has the complete Sid %s, or no Sid: %s", sid, data)
	}
}
