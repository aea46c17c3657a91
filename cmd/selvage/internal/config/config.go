// Package config holds the configuration: every key with its type, default and meaning. It also
// derives values from the configuration, such as the URLs at which clients reach the server.
//
// [Load] reads and checks the configuration. The server and the commands act on it.
package config

import "time"

// Config holds every setting. Each field is a key of selvage.yaml and an environment
// variable: SELVAGE_ and the key in capitals, with __ between levels. The same variable with
// _FILE appended names a file that holds the value. Keys of the top level are flags too,
// except secrets. Flags take precedence over the environment, then comes the file, then the
// default. Keys tagged reload are read again on SIGHUP.
//
// The comment of each field is its help: the flags, `config sample` and docs/configuration.md
// print it.
type Config struct {
	// Address for HTTP. All services are available there.
	Listen HostPort `key:"listen" default:"127.0.0.1:8080"`
	// Address for HTTPS, or off. If tls.cert or tls.acme.hosts is set, auto selects the host of
	// HTTP, with port 443 if HTTP is on port 80, and port 8443 otherwise. If neither is set, auto
	// selects 127.0.0.1:8443 if HTTP is on loopback, and off otherwise.
	ListenTLS HostPort `key:"listen_tls" default:"auto"`
	// Address for HTTPS with client certificates (RFC 8705), or off. All services are available
	// there. Each client is asked for a certificate.
	ListenMTLS HostPort `key:"listen_mtls" default:"off"`
	// Address for /healthz, /readyz, /metrics and pprof, or off.
	ListenOps HostPort `key:"listen_ops" default:"127.0.0.1:9090"`

	// Address for the media of calls, UDP and TCP on one port number, or off. If HTTP is on
	// loopback, auto selects 127.0.0.1:8444; otherwise it selects :8444.
	ListenMedia HostPort `key:"listen_media" default:"auto"`
	// Addresses at which browsers reach the media port, separated by commas (default: this
	// machine's own addresses among the addresses of the public URL's host).
	MediaAddress mediaAddresses `key:"media_address"`

	// Address for TURN, through which browsers send media if their network permits only TLS, or
	// off. It uses the certificate of HTTPS, and connects clients only to media ports of the nodes.
	ListenTURN HostPort `key:"listen_turn" default:"off"`
	// URL of the TURN server for browsers, such as turns:turn.example.com:443?transport=tcp
	// (default: the public URL's host and the port listened on).
	TURNURL turnURL `key:"turn_url"`

	// Address at which phones register and call by SIP, UDP and TCP on one port number, such as
	// :5060, or off.
	ListenSIP HostPort `key:"listen_sip" default:"off"`
	// Address at which phones register and call by SIP over TLS, such as :5061, or off. It uses the
	// certificate of HTTPS.
	ListenSIPS HostPort `key:"listen_sips" default:"off"`
	// UDP ports for the media of phones, two for each call of a phone; 0 for any free ports.
	PhonePorts portRange `key:"phone_ports" default:"20000-20999"`

	// Hash functions with which phones may prove their password: SHA-256 and MD5, separated by
	// commas, in order of preference. Some old phones consider only the first one.
	PhoneDigests digests `key:"phone_digests" default:"SHA-256,MD5"`

	// URL at which clients reach this server; all links start with it (default: http://localhost
	// with the port of the HTTP listener).
	PublicURL BaseURL `key:"public_url"`
	// URL at which clients reach the identity provider; the issuer is this URL and a slash
	// (default: the public URL).
	AuthURL BaseURL `key:"auth_url"`
	// URL at which clients connect with certificates, to listen_mtls or to a proxy (default: the
	// host of the auth URL and the port of listen_mtls).
	MTLSURL BaseURL `key:"mtls_url"`
	// Host in fabric tokens, from which browser SDKs derive the addresses they call (default:
	// puc.localhost with the port of the HTTPS listener).
	FabricHost HostPort `key:"fabric_host"`

	// Networks of your reverse proxies, such as 10.0.0.0/8. Only requests from these may state the
	// address of a client, in X-Forwarded-For or Forwarded.
	TrustedProxies networks `key:"trusted_proxies" reload:"true"`
	// Header in which trusted proxies send the certificate of a client, such as Client-Cert (RFC
	// 9440), X-Forwarded-Client-Cert (Envoy), or a header that nginx sets to
	// $ssl_client_escaped_cert.
	ClientCertHeader headerName `key:"client_cert_header"`

	// Directory for all data.
	Data string `key:"data" default:"./selvage-data"`
	// Database for everything that is kept: sqlite:FILE or postgres://USER@HOST/NAME.
	Database DatabaseURL `key:"database" default:"sqlite:selvage.db"`
	// Store for short-lived state: sqlite:FILE, postgres://…, redis://HOST:6379,
	// redis-cluster://HOST,HOST or redis-sentinel://MASTER@HOST,HOST (rediss… for TLS).
	Sessions SessionsURL `key:"sessions" default:"sqlite:sessions.db"`
	// Place for recordings, which the nodes that serve recordings share: a directory, as
	// dir:FOLDER, or a bucket of an object store, as s3://BUCKET/PREFIX?endpoint=URL&region=REGION.
	Media mediaURL `key:"media" default:"dir:media"`
	// Services to run. If nodes run different services, they must share the database and the
	// session store.
	Services Services `key:"services" default:"idp,fabric,relay,recordings,dashboard"`
	// Create no demo project on the first start.
	NoDemo bool `key:"no_demo" default:"false"`
	// File with @signalwire/js for the demo: dist/index.umd.js of the npm package. Without it, the
	// browser loads the script from cdn.signalwire.com.
	DemoSDK string `key:"demo_sdk"`

	// Email address of the first owner. If there is no operator at startup, the owner is created.
	BootstrapAdminEmail string `key:"bootstrap_admin_email" secret:"true"`
	// Password of the first owner, at least 12 characters.
	BootstrapAdminPassword string `key:"bootstrap_admin_password" secret:"true"`
	// API key with every scope, created with the first owner: PT and 64 hexadecimal digits, as
	// printed by echo PT$(openssl rand -hex 32).
	BootstrapAdminAPIToken string `key:"bootstrap_admin_api_token" secret:"true"`

	// Base64 of the 32 bytes that encrypt the key ring (default: master.key in the data
	// directory).
	MasterKey masterKey `key:"master_key" secret:"true"`
	// The master key after the next `selvage master-key rotate`, in the same form (default:
	// master.key.next in the data directory). Servers switch to it by themselves.
	MasterKeyNext masterKey `key:"master_key_next" secret:"true"`
	// Time that running requests have to finish on shutdown.
	Grace time.Duration `key:"grace" default:"25s"`
	// Time after SIGTERM in which /readyz fails but the server still accepts requests, so that
	// proxies can switch to other nodes.
	StopDelay patience `key:"stop_delay" default:"0s"`
	// Time after SIGTERM in which calls can end by themselves. The server then ends them.
	Drain patience `key:"drain" default:"0s"`

	TLS struct {
		// Names and addresses in the local certificate, in addition to localhost.
		Hosts texts `key:"hosts"`
		// PEM file with the certificate for HTTPS, followed by its intermediates; read again
		// when it changes.
		Cert fileName `key:"cert"`
		// PEM file with the private key of the certificate, readable only by its owner.
		Key fileName `key:"key"`
		// PEM file with the authorities, and their intermediates, whose certificates clients with
		// tls_client_auth may use.
		ClientCA fileName `key:"client_ca"`
		ACME     struct {
			// Names to request certificates for. The authority must reach them on port 80 or
			// 443.
			Hosts hostNames `key:"hosts"`
			// Accept the terms of service of the authority. No certificate is requested unless this
			// is true.
			AcceptTerms bool `key:"accept_terms" default:"false"`
			// Address at which the authority contacts you about the certificates.
			Email string `key:"email"`
			// ACME directory of the authority.
			Directory directoryURL `key:"directory" default:"https://acme-v02.api.letsencrypt.org/directory"`
			// PEM file with the CA certificate that signs a private authority's HTTPS certificate
			// (default: the system's CAs).
			CA fileName `key:"ca"`
		} `key:"acme"`
	} `key:"tls"`

	Keys struct {
		// Time after which the next key takes over signing.
		SigningRotation Period `key:"signing_rotation" default:"720h"`
		// Time after which the next key takes over encrypting fabric tokens, at most 168h.
		SealingRotation Period `key:"sealing_rotation" default:"24h"`
		// Time that a key is published before it signs. The clocks of nodes may differ, and copies
		// of the JWKS may be old, by up to half of it.
		Publish Period `key:"publish" default:"1h"`
	} `key:"keys"`

	Pool struct {
		// Maximum number of PostgreSQL connections for the database.
		Database connections `key:"database" default:"16"`
		// Maximum number of connections for sessions, to PostgreSQL or to each Redis server.
		Sessions connections `key:"sessions" default:"16"`
	} `key:"pool"`

	Session struct {
		// Time without activity after which a browser is signed out.
		Idle Period `key:"idle" default:"12h" reload:"true"`
		// Time after which a browser is signed out, even if it is active.
		Absolute Period `key:"absolute" default:"168h" reload:"true"`
	} `key:"session"`

	Operators struct {
		// Time without activity after which an operator is signed out of the dashboard.
		Idle Period `key:"idle" default:"1h"`
		// Time after which an operator is signed out of the dashboard, even if active.
		Absolute Period `key:"absolute" default:"12h"`
		// Operators who need a second factor: yes (all), no (none), owners, admins (admins and
		// owners), or auto, which means yes unless the server is reachable from this machine only.
		RequireFactor factorPolicy `key:"require_factor" default:"auto"`
	} `key:"operators"`

	Tokens struct {
		// Lifetime of authorization codes.
		Code lifetime `key:"code" default:"1m" reload:"true"`
		// Lifetime of pushed authorization requests.
		Pushed lifetime `key:"pushed" default:"90s" reload:"true"`
		// Lifetime of OAuth access tokens that are fabric tokens.
		AccessFabric lifetime `key:"access_fabric" default:"2h" reload:"true"`
		// Lifetime of OAuth access tokens that are JWTs.
		AccessJWT lifetime `key:"access_jwt" default:"15m" reload:"true"`
		// Lifetime of an unused OAuth refresh token.
		RefreshIdle Period `key:"refresh_idle" default:"720h" reload:"true"`
		// Lifetime of an OAuth grant, however many times its refresh token is rotated.
		RefreshAbsolute Period `key:"refresh_absolute" default:"4320h" reload:"true"`
	} `key:"tokens"`

	Password struct {
		// Minimum length of a new password in characters, from 8 to 72.
		MinLength passwordLength `key:"min_length" default:"8"`
		// Minimum strength of a new password as zxcvbn scores it, from 0 (any) to 4.
		MinScore score `key:"min_score" default:"2"`
		// File with SHA-1 hashes of breached passwords, ordered by hash, as published by Have I
		// Been Pwned. New passwords must not be in it.
		BreachedList fileName `key:"breached_list"`

		// Maximum number of passwords hashed at the same time, with 19 MiB of memory each; 0 for
		// one per processor.
		Parallel int `key:"parallel" default:"0"`
	} `key:"password"`

	Mail struct {
		// Mail server: smtp://USER@HOST:587 (STARTTLS, unless the host is this machine or
		// ?tls=none is appended), smtps://USER@HOST:465, or log:. With log:, emails are kept
		// here; read them at /dev/mail if only this machine can reach the server.
		URL mailURL `key:"url" default:"log:"`
		// Password of USER at the mail server.
		Password string `key:"password" secret:"true"`
		// PEM file with the CA certificate of the mail server (default: the CAs that the system
		// trusts).
		CA fileName `key:"ca"`
		// Sender of emails, such as Acme <no-reply@acme.example> (default: no-reply at the host
		// of the public URL). Without a name, the name of the project is used.
		From mailAddress `key:"from"`
		// Address for replies to emails.
		ReplyTo mailAddress `key:"reply_to"`
	} `key:"mail"`

	Recordings struct {
		// Largest recording accepted.
		MaxUpload size `key:"max_upload" default:"2GiB"`
		// Space that recordings leave free on their disk. If less is free, uploads are refused with
		// status 503, and senders keep their files.
		MinFree size `key:"min_free" default:"256MiB"`
		// Encrypt new recordings on disk or in the object store, with keys derived from the master
		// key (AES-256-GCM). Existing recordings are not changed, and are readable with either
		// setting.
		Encrypt bool `key:"encrypt" default:"false"`
		// Time that an announced recording waits for its media after the last update about it.
		// Then its status becomes absent.
		Wait Period `key:"wait" default:"24h"`
		// Maximum number of pieces of MP3 encoded at the same time; 0 for one per processor.
		MP3Parallel int `key:"mp3_parallel" default:"0"`
		// Header that makes the proxy in front send whole files itself: off, x-accel-redirect
		// (nginx) or x-sendfile (Apache, lighttpd).
		Offload offloading `key:"offload" default:"off"`
		// Prefix of the file in that header: a location of nginx (default /selvage-media/), or
		// a directory (default: the media directory).
		OffloadPrefix string `key:"offload_prefix"`
	} `key:"recordings"`

	S3 struct {
		// Credentials for the object store of media (default: AWS_ACCESS_KEY_ID and
		// AWS_SECRET_ACCESS_KEY, or the role of the machine).
		AccessKey string `key:"access_key" secret:"true"`
		// The secret key that belongs to the access key.
		SecretKey string `key:"secret_key" secret:"true"`
		// How whole files in the object store reach clients: stream (through this server), redirect
		// (to a URL of the store that is valid for ten minutes) or cache (through this server,
		// which keeps copies).
		Serve bucketServing `key:"serve" default:"stream"`
		// Scheme and host of the URLs to which redirect sends clients, if clients reach the store at
		// a different address than this server does (default: the endpoint in media).
		PublicURL BaseURL `key:"public_url"`
		// Maximum size of all copies with cache, in the folder media-cache of the data directory.
		CacheSize size `key:"cache_size" default:"1GiB"`
	} `key:"s3"`

	Messages struct {
		// Time that messages are kept, in days such as 400d; 0 keeps them forever.
		Keep retention `key:"keep" default:"0"`
	} `key:"messages"`

	Calls struct {
		// Time that the records of ended calls are kept, in days such as 400d; 0 keeps them
		// forever. Their recordings stay.
		Keep retention `key:"keep" default:"0"`
		// Time that a call rings before it ends with NO_ANSWER, at most 10m.
		Ring ringing `key:"ring" default:"1m"`
		// Interval of the tones that tell everyone on a call that it is recorded, such as 15s; 0s
		// for no tones. The first tone is at the beginning of the recording.
		RecordTone toneEvery `key:"record_tone" default:"0s"`
		// Control addresses of rtpengines (NG protocol over UDP), such as 127.0.0.1:2223. The first
		// rtpengine that answers carries the media of calls between two parties. If the list is
		// empty, the built-in engine carries all media. Rooms always use the built-in engine.
		RTPEngine ngAddresses `key:"rtpengine"`

		Scripts struct {
			// URL that decides by POST what happens in calls to scripts, such as SWML scripts and AI
			// agents (default: none; these calls are refused).
			URL scriptsURL `key:"url"`
			// Secret that signs the requests to the URL.
			Secret string `key:"secret" secret:"true"`
		} `key:"scripts"`
	} `key:"calls"`

	Backup struct {
		// Directory for backups that the server creates by itself (default: none).
		Directory fileName `key:"directory"`
		// age recipients to encrypt backups to, such as age1….
		Recipients ageRecipients `key:"recipients"`
		// Time between two backups.
		Every Period `key:"every" default:"24h"`
		// Number of backups to keep in the directory; 0 for all.
		Keep limit `key:"keep" default:"14"`
	} `key:"backup"`

	Egress struct {
		// Host names that webhooks, fetches of client documents and of sounds for scripts, and calls
		// through SIP gateways may reach even at private addresses or unusual ports.
		Allow texts `key:"allow"`
	} `key:"egress"`

	Limits Limits `key:"limits"`

	Audit struct {
		// Time that events of the audit trail are kept, in days such as 400d; 0 keeps them forever.
		Keep retention `key:"keep" default:"0"`
	} `key:"audit"`

	Telemetry struct {
		// URL of an OpenTelemetry collector to which traces are sent by OTLP over HTTP, such as
		// http://127.0.0.1:4318, or off. A URL without a path gets /v1/traces.
		OTLPEndpoint collectorURL `key:"otlp_endpoint" default:"off"`
		// Headers of the requests to the collector, as NAME=VALUE separated by commas.
		OTLPHeaders headerValues `key:"otlp_headers" secret:"true"`
		// Share of requests that are traced, in percent from 1 to 100.
		Sample percent `key:"sample" default:"100"`
	} `key:"telemetry"`

	Log struct {
		// Lowest level that is logged: debug, info, warn or error.
		Level logLevel `key:"level" default:"info" reload:"true"`
		// Format of the log: text, json, or auto, which is text on a terminal.
		Format LogFormat `key:"format" default:"auto"`
	} `key:"log"`
}
