package harness

import (
	"encoding/json"
	"strconv"
	"sync/atomic"
)

// APIScopes are the scopes that give an API key access to both REST APIs.
var APIScopes = []string{"Voice", "Messaging", "Fax", "Video"}

// A Project is a project with an API key for both REST APIs.
type Project struct {
	*Server
	ID  string
	Key string
}

// A Subscriber is a subscriber who can sign in.
type Subscriber struct {
	ID, Email, Password string
}

// serial makes names unique within a test process.
var serial atomic.Int64

func unique() string { return strconv.FormatInt(serial.Add(1), 10) }

// NewProject creates a project and its API key.
func (s *Server) NewProject(t T) *Project {
	t.Helper()
	s.spareMu.Lock()
	defer s.spareMu.Unlock()
	if len(s.spare) == 0 {
		s.makeSpare(t)
	}
	p := s.spare[0]
	s.spare = s.spare[1:]
	return p
}

// makeSpare creates projects with one command. On the shared server it creates a dozen of them,
// because starting a process takes longer than creating a project.
func (s *Server) makeSpare(t T) {
	t.Helper()
	type key struct {
		Name   string   `json:"name"`
		Scopes []string `json:"scopes"`
	}
	type project struct {
		Name string `json:"name"`
		Keys []key  `json:"keys"`
	}
	var file struct {
		Projects []project `json:"projects"`
	}

	number := 1
	if s.shared {
		number = 12
	}
	for range number {
		file.Projects = append(file.Projects, project{"Test " + unique(), []key{{"test", APIScopes}}})
	}

	text, err := json.Marshal(file)
	if err != nil {
		t.Fatalf("%v", err)
	}

	var made struct {
		Changes []struct{ Kind, Project, ID, Secret string }
	}
	out := s.command(t, string(text), "apply", "--file", "-", "--yes", "-o", "json")
	if err := json.Unmarshal(out, &made); err != nil || len(made.Changes) != 2*number {
		t.Fatalf("selvage apply of %d projects printed (%v)\n%s", number, err, out)
	}

	for i := 0; i < len(made.Changes); i += 2 { // each project is followed by its key
		s.spare = append(s.spare, &Project{Server: s, ID: made.Changes[i].ID, Key: made.Changes[i+1].Secret})
	}
}

// NewKey creates an API key with the scopes.
func (p *Project) NewKey(t T, scopes ...string) string {
	t.Helper()
	args := []string{"key", "create", "--project", p.ID}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	return member(t, p.CLI(t, "", args...), "key")
}

// Basic returns an option that authenticates with the project's API key.
func (p *Project) Basic() Option { return Basic(p.ID, p.Key) }

// NewSubscriber creates a subscriber over REST.
func (p *Project) NewSubscriber(t T) Subscriber {
	t.Helper()
	s := Subscriber{Email: "person" + unique() + "@example.com", Password: "fathom-lantern-" + unique()}
	a := p.Post(t, "/api/fabric/resources/subscribers", p.Basic(), JSON(map[string]any{
		"email":        s.Email,
		"password":     s.Password,
		"first_name":   "Ada",
		"last_name":    "Lovelace",
		"display_name": "Ada L.",
	}))
	s.ID = member(t, a.Want(t, 201).Object(t), "id")
	return s
}

// A SAT is the fabric's response to a request for a subscriber's token.
type SAT struct {
	SubscriberID string `json:"subscriber_id"`
	Token        string `json:"token"`
	RefreshToken string `json:"refresh_token"`
}

// NewSAT requests a token for a reference.
func (p *Project) NewSAT(t T, reference string) SAT {
	t.Helper()
	var sat SAT
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
		JSON(map[string]any{"reference": reference})).Want(t, 200).Read(t, &sat)
	return sat
}

// Address returns the id of a subscriber's own address.
func (p *Project) Address(t T, subscriberID string) string {
	t.Helper()
	var list struct{ Data []struct{ ID string } }
	p.Get(t, "/api/fabric/resources/subscribers/"+subscriberID+"/addresses", p.Basic()).Want(t, 200).Read(t, &list)
	if len(list.Data) == 0 {
		t.Fatalf("subscriber %s has no address", subscriberID)
	}
	return list.Data[0].ID
}

// NewGuest requests a guest token for the addresses.
func (p *Project) NewGuest(t T, addresses ...string) SAT {
	t.Helper()
	var guest SAT
	p.Post(t, "/api/fabric/guests/tokens", p.Basic(),
		JSON(map[string]any{"allowed_addresses": addresses})).Want(t, 201).Read(t, &guest)
	return guest
}

// NewInvite requests an invite to one of a subscriber's own addresses.
func (p *Project) NewInvite(t T, sat, address string) string {
	t.Helper()
	a := p.Post(t, "/api/fabric/subscriber/invites", Bearer(sat), JSON(map[string]any{"address_id": address}))
	return member(t, a.Want(t, 201).Object(t), "token")
}

// LaML returns the path of one of the project's resources in the LaML API.
func (p *Project) LaML(path string) string {
	return "/api/laml/2010-04-01/Accounts/" + p.ID + path
}

// Upload stores a recording and returns its Sid.
func (p *Project) Upload(t T, wav []byte) string {
	t.Helper()
	a := p.Post(t, p.LaML("/Recordings"), p.Basic(), Body("audio/wav", wav)).Want(t, 201)
	return member(t, a.Object(t), "sid")
}

// member returns a member of a JSON object, which must be a nonempty string.
func member(t T, object map[string]any, name string) string {
	t.Helper()
	v, _ := object[name].(string)
	if v == "" {
		t.Fatalf("the answer %v has no %q", object, name)
	}
	return v
}
