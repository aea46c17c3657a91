package canaries

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/test/harness"
)

const (
	upstreamSecret = "canary-upstream-warp-4716"
	messageText    = "canary-message-weft-4717"
)

// plantKeys creates and uses the secrets of switches, self-registered clients, upstream providers
// and connectors.
func (n *nest) plantKeys(t *testing.T, add func(name, secret string)) {
	t.Helper()
	made := func(path, member string, in map[string]any) string {
		return fmt.Sprint(n.Post(t, path, n.basic(), harness.JSON(in)).Want(t, 200, 201).Object(t)[member])
	}
	ingest := made("/api/project/ingest_keys", "token", map[string]any{"name": "switch"})
	n.Do(t, "PUT", "/ingest/"+ingest+"/call.wav", harness.Body("audio/wav", harness.Tone(8000, 16))).Want(t, 201)
	n.Do(t, "PUT", "/ingest/"+ingest+"/bad.wav", harness.Body("audio/wav", []byte("no audio"))).Want(t, 415)
	add("ingest key", ingest)

	n.CLI(t, "", "project", "update", n.ID, "--client-registration", "token")
	initial := made("/api/project/registration_tokens", "token", map[string]any{"name": "partner"})
	add("initial access token", initial)
	registered := n.Post(t, "/oauth/register", harness.Bearer(initial), harness.JSON(map[string]any{
		"redirect_uris": []string{"https://app.example/cb"}})).Want(t, 201).Object(t)
	manage, secret := fmt.Sprint(registered["registration_access_token"]), fmt.Sprint(registered["client_secret"])
	n.Get(t, "/oauth/register/"+fmt.Sprint(registered["client_id"]), harness.Bearer(manage)).Want(t, 200)
	add("registration access token", manage)
	add("registered client's secret", secret)

	made("/api/project/upstreams", "id", map[string]any{
		"name":          "Acme",
		"issuer":        "https://id.example.com",
		"client_id":     "us",
		"client_secret": upstreamSecret,
	})
	add("upstream client secret", upstreamSecret)
	connector := uuid.NewString()
	made("/api/fabric/resources/freeswitch_connectors", "id", map[string]any{"name": "switch", "token": connector})
	add("connector token", connector)
}

// plantSessions creates a device code, causes an email with a link, and sends a message.
func (n *nest) plantSessions(t *testing.T, add func(name, secret string)) {
	t.Helper()
	tv := n.NewClient(t, "native", "--grant", "device_code", "--grant", "refresh_token")
	add("device code", fmt.Sprint(n.Post(t, "/oauth/device_authorization",
		harness.Form(url.Values{"client_id": {tv.ID}, "scope": {"openid"}})).Want(t, 200).Object(t)["device_code"]))

	const subscribers = "/api/fabric/resources/subscribers"
	invited := n.Post(t, subscribers, n.basic(), harness.JSON(map[string]string{"email": "new@example.com"})).
		Want(t, 201).Object(t)
	n.Post(t, fmt.Sprint(subscribers, "/", invited["id"], "/invitation"), n.basic()).Want(t, 200, 201, 202)
	add("link in an email", n.mailedToken(t))

	ada := n.NewSAT(t, "ada")
	n.Post(t, "/api/fabric/messages", harness.Bearer(ada.Token), harness.JSON(map[string]string{
		"conversation_id": n.Address(t, n.subscriber.ID),
		"text":            messageText,
	})).Want(t, 201)
	add("message", messageText)
}

var linkToken = regexp.MustCompile(`token=([\w-]{20,})`)

// mailedToken returns the token of the link in the newest email.
func (n *nest) mailedToken(t *testing.T) (token string) {
	t.Helper()
	harness.Eventually(t, time.Minute, "an email with a link", func() error {
		list := harness.Page{Answer: n.Get(t, "/dev/mail").Want(t, 200)}
		if !list.Has("mail-0") {
			return fmt.Errorf("there is no email")
		}
		found := linkToken.FindSubmatch(n.Get(t, list.Attribute(t, "mail-0", "href")).Body)
		if found == nil {
			return fmt.Errorf("the newest email has no link")
		}
		token = string(found[1])
		return nil
	})
	return token
}

// backedUp creates an encrypted backup. It returns the bytes of the backup, and the output of the
// command.
func backedUp(t *testing.T, s *harness.Server) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	recipient := strings.TrimSpace(s.Command(t, "", "backup", "key", filepath.Join(dir, "identity")))
	file := filepath.Join(dir, "backup")
	all := map[string][]byte{"what backup create prints": []byte(s.Command(t, "", "backup", "create", file,
		"--recipient", recipient))}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all["the backup"] = content
	return all
}
