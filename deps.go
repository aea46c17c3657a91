package selvage

import (
	_ "github.com/chromedp/chromedp"
	_ "github.com/coreos/go-oidc/v3/oidc"
	_ "github.com/go-jose/go-jose/v4"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/uuid"
	_ "github.com/gorilla/sessions"
	_ "github.com/knadh/koanf/v2"
	_ "github.com/pressly/goose/v3"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/rs/cors"
	_ "github.com/spf13/cobra"
	_ "github.com/zitadel/oidc/v3/pkg/op"
	_ "golang.org/x/crypto/argon2"
	_ "golang.org/x/oauth2"
	_ "golang.org/x/term"
	_ "golang.org/x/text/unicode/norm"
	_ "modernc.org/sqlite"
)
