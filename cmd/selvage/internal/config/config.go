// Package config is the configuration: every key with its default and its meaning, where
// values come from, what is wrong with them, and what follows from them without asking
// anybody, such as where clients reach the server.
//
// [Load] reads it. What a server or a command makes of it is theirs.
package config

import "time"

// Config is everything that can be set. Each field is a key of selvage.yaml and
// an environment variable (SELVAGE_ and the key in capitals, __ between levels;
// with _FILE behind it, the name of a file that holds the value). Those of the
// top level are flags too, but for secrets. Flags go before the environment, that
// before the file, that before the default. What is read again on SIGHUP is
// tagged reload.
type Config struct {
	Listen    HostPort `koanf:"listen" default:"127.0.0.1:8080" help:"address for HTTP: everything"`
	ListenTLS HostPort `koanf:"listen_tls" default:"auto" help:"address for HTTPS, or off; auto is 127.0.0.1:8443 where HTTP is on loopback, beside HTTP where tls.cert or tls.acme.hosts is set (443 beside 80, else 8443), else off"`
	ListenOps HostPort `koanf:"listen_ops" default:"127.0.0.1:9090" help:"address for /healthz, /readyz, /metrics and pprof, or off"`

	PublicURL  BaseURL  `koanf:"public_url" help:"where clients reach this server; every link comes from it (default http://localhost and the port of HTTP)"`
	AuthURL    BaseURL  `koanf:"auth_url" help:"where clients reach the identity provider; the issuer is this and a slash (default: the public URL)"`
	FabricHost HostPort `koanf:"fabric_host" help:"the host in each fabric token, from which browser SDKs take the addresses they call (default puc.localhost and the port of HTTPS)"`

	TrustedProxies networks `koanf:"trusted_proxies" reload:"true" help:"networks of the proxies in front, such as 10.0.0.0/8: what they say in X-Forwarded-For, or Forwarded, is where a request comes from; nobody else is asked"`

	Data     string      `koanf:"data" default:"./selvage-data" help:"directory of everything that is kept"`
	Database DatabaseURL `koanf:"database" default:"sqlite:selvage.db" help:"where rows are kept: sqlite:FILE or postgres://USER@HOST/NAME"`
	Sessions SessionsURL `koanf:"sessions" default:"sqlite:sessions.db" help:"where short-lived state is kept: sqlite:FILE, postgres://…, redis://HOST:6379, redis-cluster://HOST,HOST or redis-sentinel://MASTER@HOST,HOST (rediss… is with TLS)"`
	Media    folderURL   `koanf:"media" default:"dir:media" help:"where recordings are kept: dir:FOLDER; nodes that serve recordings share one"`
	Services Services    `koanf:"services" default:"idp,fabric,relay,recordings,dashboard" help:"what this server serves; some of it alone needs a database and sessions that nodes share"`
	NoDemo   bool        `koanf:"no_demo" default:"false" help:"make no demo project on the first start"`

	BootstrapAdminEmail    string `koanf:"bootstrap_admin_email" secret:"true" help:"e-mail of the owner that a start makes where there is no operator yet"`
	BootstrapAdminPassword string `koanf:"bootstrap_admin_password" secret:"true" help:"password of that owner, at least 12 characters"`
	BootstrapAdminAPIToken string `koanf:"bootstrap_admin_api_token" secret:"true" help:"API key that a start makes beside that owner, with every scope: PT and 64 hexadecimal digits, such as echo PT$(openssl rand -hex 32) prints"`

	MasterKey masterKey     `koanf:"master_key" secret:"true" help:"base64 of the 32 bytes that seal the key ring (default: master.key in the data directory)"`
	Grace     time.Duration `koanf:"grace" default:"25s" help:"how long requests may take to finish once the server is told to stop"`

	TLS struct {
		Hosts texts    `koanf:"hosts" help:"names and addresses that the local certificate has beside localhost and its like"`
		Cert  fileName `koanf:"cert" help:"file of the certificate for HTTPS and of those that vouch for it, in this order, as PEM; read again when it changes"`
		Key   fileName `koanf:"key" help:"file of its key, as PEM, for nobody else to read"`
		ACME  struct {
			Hosts       hostNames    `koanf:"hosts" help:"names to have a certificate for from a public authority, which reaches them on port 80 or 443"`
			AcceptTerms bool         `koanf:"accept_terms" default:"false" help:"that authority's terms of service are accepted; nothing is asked of it before"`
			Email       string       `koanf:"email" help:"whom it writes to about the certificates"`
			Directory   directoryURL `koanf:"directory" default:"https://acme-v02.api.letsencrypt.org/directory" help:"where it is asked"`
			CA          fileName     `koanf:"ca" help:"file of the certificate that vouches for the HTTPS of a private one, as PEM (default: those that the system trusts)"`
		} `koanf:"acme"`
	} `koanf:"tls"`

	Keys struct {
		SigningRotation Period `koanf:"signing_rotation" default:"720h" help:"how long a key signs before the next one does"`
		SealingRotation Period `koanf:"sealing_rotation" default:"24h" help:"how long a key seals fabric tokens before the next one does; at most 168h"`
		Publish         Period `koanf:"publish" default:"1h" help:"how long a key is published before it signs; clocks of nodes, and of who caches the JWKS, may be half of it apart"`
	} `koanf:"keys"`

	Pool struct {
		Database connections `koanf:"database" default:"16" help:"connections to PostgreSQL for rows, at most"`
		Sessions connections `koanf:"sessions" default:"16" help:"connections for sessions to PostgreSQL, or to each server of Redis, at most"`
	} `koanf:"pool"`

	Session struct {
		Idle     Period `koanf:"idle" default:"12h" reload:"true" help:"how long a browser stays signed in unused"`
		Absolute Period `koanf:"absolute" default:"168h" reload:"true" help:"how long a browser stays signed in at most"`
	} `koanf:"session"`

	Operators struct {
		Idle          Period      `koanf:"idle" default:"1h" help:"how long an operator stays signed in to the dashboard unused"`
		Absolute      Period      `koanf:"absolute" default:"12h" help:"how long an operator stays signed in to the dashboard at most"`
		RequireFactor whoseFactor `koanf:"require_factor" default:"auto" help:"which operators need a second factor: yes for all, no for none, owners, admins for both of these, or auto: yes where others than this machine can reach the server"`
	} `koanf:"operators"`

	Tokens struct {
		Code            lifetime `koanf:"code" default:"1m" reload:"true" help:"lifetime of authorization codes"`
		AccessFabric    lifetime `koanf:"access_fabric" default:"2h" reload:"true" help:"lifetime of OAuth access tokens that are fabric tokens"`
		AccessJWT       lifetime `koanf:"access_jwt" default:"15m" reload:"true" help:"lifetime of OAuth access tokens that are JWTs"`
		RefreshIdle     Period   `koanf:"refresh_idle" default:"720h" reload:"true" help:"how long an OAuth refresh token lives unused"`
		RefreshAbsolute Period   `koanf:"refresh_absolute" default:"4320h" reload:"true" help:"how long OAuth refresh tokens can follow each other"`
	} `koanf:"tokens"`

	Password struct {
		MinLength    passwordLength `koanf:"min_length" default:"8" help:"characters that a new password must have, from 8 to 72"`
		MinScore     score          `koanf:"min_score" default:"2" help:"how hard a new password must be to guess, from 0, any, to 4, as zxcvbn counts"`
		BreachedList fileName       `koanf:"breached_list" help:"file of the SHA-1 of passwords that were found in breaches, ordered by hash, as Have I Been Pwned gives it out: new ones must not be in it"`

		Parallel int `koanf:"parallel" default:"0" help:"passwords hashed at a time, each in 19 MiB; 0 is one a processor"`
	} `koanf:"password"`

	Mail struct {
		URL      mailURL     `koanf:"url" default:"log:" help:"who takes mails: smtp://USER@HOST:587 (STARTTLS, unless the host is this machine or ?tls=none is behind it), smtps://USER@HOST:465, or log:, by which they stay here, to be read at /dev/mail where only this machine reaches the server"`
		Password string      `koanf:"password" secret:"true" help:"the password of USER there"`
		CA       fileName    `koanf:"ca" help:"file of the certificate that vouches for its TLS, as PEM (default: those that the system trusts)"`
		From     mailAddress `koanf:"from" help:"in whose name mails are, such as Acme <no-reply@acme.example> (default: no-reply at the host of the public URL); without a name it is the project's"`
		ReplyTo  mailAddress `koanf:"reply_to" help:"where answers to mails go"`
	} `koanf:"mail"`

	Recordings struct {
		MaxUpload     size       `koanf:"max_upload" default:"2GiB" help:"largest recording that is taken"`
		Wait          Period     `koanf:"wait" default:"24h" help:"how long a recording that was announced waits for its media, from the last that was heard of it; then it is absent"`
		MP3Parallel   int        `koanf:"mp3_parallel" default:"0" help:"pieces of MP3 that are encoded at a time; 0 is one a processor"`
		Offload       offloading `koanf:"offload" default:"off" help:"header by which the server in front sends whole files itself: off, x-accel-redirect (nginx) or x-sendfile (Apache, lighttpd)"`
		OffloadPrefix string     `koanf:"offload_prefix" help:"what that header has in front of a file: a location of nginx (default /selvage-media/), or a directory (default: the media directory)"`
	} `koanf:"recordings"`

	Egress struct {
		Allow texts `koanf:"allow" help:"names of hosts that webhooks may be sent to, and documents of clients fetched from, although they have private addresses, or ports of other services"`
	} `koanf:"egress"`

	Limits struct {
		RelaySockets         atMost `koanf:"relay_sockets" default:"100" help:"sockets that a subscriber, or whoever has the same guest token, may have open to this server; 0 for no limit"`
		RelayUnauthenticated atMost `koanf:"relay_unauthenticated" default:"200" help:"sockets from one address that have not said whose they are yet; 0 for no limit"`
		EmbedTokens          atMost `koanf:"embed_tokens" default:"600" help:"guest tokens that an embed key gives a minute, at all nodes together; 0 for no limit"`
		EmbedSockets         atMost `koanf:"embed_sockets" default:"600" help:"sockets opened with such tokens of a key a minute, at all nodes together; 0 for no limit"`
		DeviceCodes          atMost `koanf:"device_codes" default:"20" help:"codes of devices that are typed at one address in ten minutes; 0 for no limit"`

		LoginPerAccount       atMost `koanf:"login_per_account" default:"10" reload:"true" help:"passwords that may be tried at an account at once, right ones not counted, and two and a half times as many within an hour; so many too by each device that signed in to it before; 0 for no limit"`
		LoginPerNetwork       atMost `koanf:"login_per_network" default:"80" reload:"true" help:"wrong passwords from one address in 15 minutes; 0 for no limit"`
		LoginPerRange         atMost `koanf:"login_per_range" default:"400" reload:"true" help:"wrong passwords from one IPv6 /48 or IPv4 /24 in 15 minutes; 0 for no limit"`
		AuthorizePerNetwork   atMost `koanf:"authorize_per_network" default:"1200" reload:"true" help:"authorization requests from one address a minute, and pages of accounts asked for by who is not signed in; 0 for no limit"`
		TokenPerClient        atMost `koanf:"token_per_client" default:"6000" reload:"true" help:"requests for tokens of a client from one address a minute; 0 for no limit"`
		RegisterPerNetwork    atMost `koanf:"register_per_network" default:"20" reload:"true" help:"registrations from one address an hour; 0 for no limit"`
		MailPerAddress        atMost `koanf:"mail_per_address" default:"5" reload:"true" help:"mails an hour to one address that who is not signed in asks for; 0 for no limit"`
		MailPerNetwork        atMost `koanf:"mail_per_network" default:"30" reload:"true" help:"mails an hour that one address asks for without being signed in; 0 for no limit"`
		APIRequests           atMost `koanf:"api_requests" default:"60000" reload:"true" help:"requests of an API key, a client or a token a minute; 0 for no limit"`
		APIWrites             atMost `koanf:"api_writes" default:"30000" reload:"true" help:"those of them that change something; 0 for no limit"`
		MediaMissesPerNetwork atMost `koanf:"media_misses_per_network" default:"300" reload:"true" help:"recordings that there are not, asked for from one address a minute; 0 for no limit"`
	} `koanf:"limits"`

	Audit struct {
		Keep retention `koanf:"keep" default:"0" help:"how long events of the audit trail are kept, in days such as 400d; 0 is for ever"`
	} `koanf:"audit"`

	Log struct {
		Level  logLevel  `koanf:"level" default:"info" reload:"true" help:"debug, info, warn or error"`
		Format LogFormat `koanf:"format" default:"auto" help:"text, json, or auto: text on a terminal"`
	} `koanf:"log"`
}
