// Package config holds the configuration: every key with its type, default and meaning. It also
// derives values from the configuration, such as the URLs at which clients reach the server.
//
// [Load] reads and checks the configuration. The server and the commands act on it.
package config

import "time"

// Config holds every setting. Each field can be set by a key of selvage.yaml or by an environment
// variable, whose name is SELVAGE_ and the key in capitals, with __ between levels. The same variable with
// _FILE appended names a file that holds the value. Keys of the top level, except secrets, are also flags.
// A flag overrides the environment, which overrides selvage.yaml, which overrides the default. Keys
// tagged reload are read again on SIGHUP.
//
// The comment of each field is its help: the flags, `config sample` and docs/configuration.md
// print it.
type Config struct {
	// Address for HTTP, where all services are available.
	Listen HostPort `key:"listen" default:"127.0.0.1:8080"`
	// Address for HTTPS, or off. If tls.cert or tls.acme.hosts is set, auto selects the host of
	// HTTP, and port 443 if HTTP is on port 80, otherwise port 8443. If neither is set, auto
	// selects 127.0.0.1:8443 if HTTP is on loopback, and otherwise off.
	ListenTLS HostPort `key:"listen_tls" default:"auto"`
	// Address for HTTPS with client certificates (RFC 8705), or off. All services are available
	// there, and each client is asked for a certificate.
	ListenMTLS HostPort `key:"listen_mtls" default:"off"`
	// Address for /healthz, /readyz, /metrics and pprof, or off.
	ListenOps HostPort `key:"listen_ops" default:"127.0.0.1:9090"`

	// Address for the media of calls, or off. UDP and TCP use the same port number. If HTTP is on
	// loopback, auto selects 127.0.0.1:8444, and otherwise :8444.
	ListenMedia HostPort `key:"listen_media" default:"auto"`
	// Addresses at which clients reach the media port, separated by commas (default: the addresses
	// of the public URL's host that this machine has).
	MediaAddress mediaAddresses `key:"media_address"`

	// Address of the TURN server, or off. Browsers send media through it if their network permits
	// only TLS. It uses the HTTPS certificate, and connects clients only to media ports of the
	// nodes.
	ListenTURN HostPort `key:"listen_turn" default:"off"`
	// URL of the TURN server for browsers, such as turns:turn.example.com:443?transport=tcp
	// (default: the host of the public URL and the port of listen_turn).
	TURNURL turnURL `key:"turn_url"`

	// Address for SIP phones, such as :5060, or off. UDP and TCP use the same port number.
	ListenSIP HostPort `key:"listen_sip" default:"off"`
	// Address for SIP phones with TLS, such as :5061, or off. It uses the HTTPS certificate.
	ListenSIPS HostPort `key:"listen_sips" default:"off"`
	// UDP ports for the media of phones. A phone uses two of them for each call. 0 means any free
	// ports.
	PhonePorts portRange `key:"phone_ports" default:"20000-20999"`

	// Hash functions that phones can use to prove their password, SHA-256 and MD5, separated by
	// commas, in order of preference. Some old phones consider only the first one.
	PhoneDigests digests `key:"phone_digests" default:"SHA-256,MD5"`

	// URL at which clients reach this server. All links begin with it (default: the address of the
	// HTTP listener, or localhost with its port if it listens on loopback or all addresses).
	PublicURL BaseURL `key:"public_url"`
	// URL at which clients reach the identity provider. The issuer is this URL followed by a slash
	// (default: the public URL).
	AuthURL BaseURL `key:"auth_url"`
	// URL at which clients connect with certificates, to listen_mtls or to a proxy (default: the
	// host of the auth URL and the port of listen_mtls).
	MTLSURL BaseURL `key:"mtls_url"`
	// Host in fabric tokens, from which browser SDKs derive the hosts that they connect to
	// (default: puc.localhost with the port of the HTTPS listener).
	FabricHost HostPort `key:"fabric_host"`

	// Networks of your reverse proxies, such as 10.0.0.0/8. Only requests from these networks can
	// name the address of a client, in X-Forwarded-For or Forwarded.
	TrustedProxies networks `key:"trusted_proxies" reload:"true"`
	// Header in which trusted proxies send a client's certificate: Client-Cert (RFC 9440),
	// X-Forwarded-Client-Cert (Envoy), or any header that nginx sets to $ssl_client_escaped_cert.
	ClientCertHeader headerName `key:"client_cert_header"`

	// Directory for all data.
	Data string `key:"data" default:"./selvage-data"`
	// Database for permanent data: sqlite:FILE or postgres://USER@HOST/NAME.
	Database DatabaseURL `key:"database" default:"sqlite:selvage.db"`
	// Store for short-lived state: sqlite:FILE, postgres://…, redis://HOST:6379,
	// redis-cluster://HOST,HOST or redis-sentinel://MASTER@HOST,HOST. For TLS, write rediss instead
	// of redis.
	Sessions SessionsURL `key:"sessions" default:"sqlite:sessions.db"`
	// Where recordings are stored: a directory (dir:FOLDER) or a bucket of an object store
	// (s3://BUCKET/PREFIX?endpoint=URL&region=REGION). All nodes that serve recordings must share
	// it.
	Media mediaURL `key:"media" default:"dir:media"`
	// Services to run. Nodes that run different services must share the database and the session
	// store.
	Services Services `key:"services" default:"idp,fabric,relay,recordings,dashboard"`
	// Do not create a demo project on the first start.
	NoDemo bool `key:"no_demo" default:"false"`
	// File with @signalwire/js for the demo: dist/index.umd.js of the npm package. Without it, the
	// browser loads the script from cdn.signalwire.com.
	DemoSDK string `key:"demo_sdk"`

	// Email address of the first owner. If there is no operator at startup, the server creates this
	// owner.
	BootstrapAdminEmail string `key:"bootstrap_admin_email" secret:"true"`
	// Password of the first owner, at least 12 characters.
	BootstrapAdminPassword string `key:"bootstrap_admin_password" secret:"true"`
	// API key with every scope, which the server creates with the first owner: PT and 64
	// hexadecimal digits, as printed by echo PT$(openssl rand -hex 32).
	BootstrapAdminAPIToken string `key:"bootstrap_admin_api_token" secret:"true"`

	// Key that encrypts the key ring: 32 bytes in Base64 (default: master.key in the data
	// directory).
	MasterKey masterKey `key:"master_key" secret:"true"`
	// Master key to which `selvage master-key rotate` switches, in the same form (default:
	// master.key.next in the data directory). Servers then use it automatically.
	MasterKeyNext masterKey `key:"master_key_next" secret:"true"`
	// Time for running requests to finish on shutdown.
	Grace time.Duration `key:"grace" default:"25s"`
	// Time after SIGTERM during which the server still accepts requests although /readyz fails, so
	// that proxies can switch to other nodes.
	StopDelay patience `key:"stop_delay" default:"0s"`
	// Time after SIGTERM during which running calls can continue. Then the server ends them.
	Drain patience `key:"drain" default:"0s"`

	TLS struct {
		// Names and addresses in the certificate of the local authority, in addition to localhost.
		Hosts texts `key:"hosts"`
		// PEM file with the HTTPS certificate, followed by its intermediates. The server reads it
		// again when it changes.
		Cert fileName `key:"cert"`
		// PEM file with the private key of the certificate, readable only by its owner.
		Key fileName `key:"key"`
		// PEM file with the authorities whose certificates clients with tls_client_auth can use,
		// and with their intermediates.
		ClientCA fileName `key:"client_ca"`
		ACME     struct {
			// Names to request certificates for. The authority must be able to reach them on port
			// 80 or 443.
			Hosts hostNames `key:"hosts"`
			// Whether you accept the authority's terms of service. The server requests certificates
			// only if this is true.
			AcceptTerms bool `key:"accept_terms" default:"false"`
			// Address at which the authority contacts you about the certificates.
			Email string `key:"email"`
			// ACME directory of the authority.
			Directory directoryURL `key:"directory" default:"https://acme-v02.api.letsencrypt.org/directory"`
			// PEM file with the CA certificate that signed the authority's own HTTPS certificate
			// (default: the CAs that the system trusts).
			CA fileName `key:"ca"`
		} `key:"acme"`
	} `key:"tls"`

	Keys struct {
		// Time after which the next signing key comes into use.
		SigningRotation Period `key:"signing_rotation" default:"720h"`
		// Time after which the next key that seals fabric tokens comes into use, at most 168h.
		SealingRotation Period `key:"sealing_rotation" default:"24h"`
		// Time between the publication of a key and its first use. The clocks of nodes may differ
		// by up to half of it, and cached copies of the JWKS may be up to half of it old.
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
		// Time after which an operator is signed out of the dashboard, even while active.
		Absolute Period `key:"absolute" default:"12h"`
		// Which operators need a second factor: yes (all), no (none), owners, admins (admins and
		// owners), or auto. auto means no if only this machine can reach the server, and otherwise
		// yes.
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
		// Lifetime of an OAuth grant, no matter how often its refresh token is rotated.
		RefreshAbsolute Period `key:"refresh_absolute" default:"4320h" reload:"true"`
	} `key:"tokens"`

	Password struct {
		// Minimum length of a new password in characters, from 8 to 72.
		MinLength passwordLength `key:"min_length" default:"8"`
		// Minimum zxcvbn score of a new password, from 0 (any password) to 4.
		MinScore score `key:"min_score" default:"2"`
		// File with SHA-1 hashes of breached passwords, ordered by hash, as Have I Been Pwned
		// publishes it. New passwords must not be in it.
		BreachedList fileName `key:"breached_list"`

		// Maximum number of passwords hashed at the same time, each in 19 MiB of memory. 0 means
		// one per processor.
		Parallel int `key:"parallel" default:"0"`
	} `key:"password"`

	Mail struct {
		// Mail server: smtp://USER@HOST:587 or smtps://USER@HOST:465. With smtp, STARTTLS is
		// required unless the host is this machine or the URL ends with ?tls=none. With log:,
		// emails are kept instead of sent; read them at /dev/mail if only this machine can reach
		// the server.
		URL mailURL `key:"url" default:"log:"`
		// Password of USER at the mail server.
		Password string `key:"password" secret:"true"`
		// PEM file with the CA certificate of the mail server (default: the CAs that the system
		// trusts).
		CA fileName `key:"ca"`
		// Sender of emails, such as Acme <no-reply@acme.example>. If it has no name, the project's
		// name is used (default: no-reply at the host of the public URL).
		From mailAddress `key:"from"`
		// Address for replies to emails.
		ReplyTo mailAddress `key:"reply_to"`
	} `key:"mail"`

	Recordings struct {
		// Maximum size of an uploaded recording.
		MaxUpload size `key:"max_upload" default:"2GiB"`
		// Disk space that recordings leave free. If less is free, uploads are rejected with status
		// 503, and senders keep their files.
		MinFree size `key:"min_free" default:"256MiB"`
		// Encrypt new recordings on disk or in the object store, with keys derived from the master
		// key (AES-256-GCM). Existing recordings do not change, and can be read with either
		// setting.
		Encrypt bool `key:"encrypt" default:"false"`
		// Time that an announced recording waits for its media after its last update, or after the
		// end of a call on this server. Then its status becomes absent.
		Wait Period `key:"wait" default:"24h"`
		// Maximum number of MP3 pieces encoded at the same time. 0 means one per processor.
		MP3Parallel int `key:"mp3_parallel" default:"0"`
		// Header that makes the proxy send whole files itself: off, x-accel-redirect (nginx) or
		// x-sendfile (Apache, lighttpd).
		Offload offloading `key:"offload" default:"off"`
		// Prefix of the file name in that header: an nginx location (default: /selvage-media/) or a
		// directory (default: the media directory).
		OffloadPrefix string `key:"offload_prefix"`
	} `key:"recordings"`

	S3 struct {
		// Access key for the object store (default: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or
		// the role of the machine).
		AccessKey string `key:"access_key" secret:"true"`
		// Secret key that belongs to the access key.
		SecretKey string `key:"secret_key" secret:"true"`
		// How clients receive whole files from the object store: stream (through this server),
		// redirect (to a URL of the store that is valid for ten minutes) or cache (through this
		// server, which keeps copies).
		Serve bucketServing `key:"serve" default:"stream"`
		// Scheme and host of the URLs to which s3.serve redirects clients. Set it if clients reach
		// the store at a different address than this server does (default: the endpoint in media).
		PublicURL BaseURL `key:"public_url"`
		// Maximum size of all copies in media-cache in the data directory, if s3.serve is cache.
		CacheSize size `key:"cache_size" default:"1GiB"`
	} `key:"s3"`

	Messages struct {
		// Time that messages are kept, in days such as 400d; 0 keeps them forever.
		Keep retention `key:"keep" default:"0"`
	} `key:"messages"`

	Calls struct {
		// Time that the records of ended calls are kept, in days such as 400d; 0 keeps them
		// forever. Recordings are not affected.
		Keep retention `key:"keep" default:"0"`
		// Time that a call rings before it ends with NO_ANSWER, at most 10m.
		Ring ringing `key:"ring" default:"1m"`
		// Interval between tones that tell everyone on a call that it is recorded, such as 15s; 0s
		// means no tones. The first tone is at the beginning of the recording.
		RecordTone toneEvery `key:"record_tone" default:"0s"`
		// Control addresses of rtpengines (NG protocol over UDP), such as 127.0.0.1:2223. The first
		// rtpengine that responds carries the media of calls between two parties. If the list is
		// empty, the built-in engine carries all media. Rooms always use the built-in engine.
		RTPEngine ngAddresses `key:"rtpengine"`

		Scripts struct {
			// URL of the webhook that controls calls to scripts, such as SWML scripts and AI
			// agents. It receives POST requests (default: none; these calls are rejected).
			URL scriptsURL `key:"url"`
			// Secret that signs the requests to calls.scripts.url.
			Secret string `key:"secret" secret:"true"`
		} `key:"scripts"`
	} `key:"calls"`

	Backup struct {
		// Directory for scheduled backups (default: none).
		Directory fileName `key:"directory"`
		// age recipients for whom backups are encrypted, such as age1….
		Recipients ageRecipients `key:"recipients"`
		// Time between two scheduled backups.
		Every Period `key:"every" default:"24h"`
		// Number of backups to keep in the directory; 0 for all.
		Keep limit `key:"keep" default:"14"`
	} `key:"backup"`

	Egress struct {
		// Host names that selvage may connect to even at private addresses or unusual ports. This
		// applies to webhooks, client documents, sounds for scripts, and calls through SIP
		// gateways.
		Allow texts `key:"allow"`
	} `key:"egress"`

	Limits Limits `key:"limits"`

	Audit struct {
		// Time that events of the audit trail are kept, in days such as 400d; 0 keeps them forever.
		Keep retention `key:"keep" default:"0"`
	} `key:"audit"`

	Telemetry struct {
		// URL of the OpenTelemetry collector that receives traces by OTLP over HTTP, such as
		// http://127.0.0.1:4318, or off. If the URL has no path, /v1/traces is added.
		OTLPEndpoint collectorURL `key:"otlp_endpoint" default:"off"`
		// Headers of requests to the collector: NAME=VALUE pairs, separated by commas.
		OTLPHeaders headerValues `key:"otlp_headers" secret:"true"`
		// Percentage of requests that are traced, from 1 to 100.
		Sample percent `key:"sample" default:"100"`
	} `key:"telemetry"`

	Log struct {
		// Lowest level that is logged: debug, info, warn or error.
		Level logLevel `key:"level" default:"info" reload:"true"`
		// Format of the log: text, json, or auto. auto means text on a terminal, and otherwise
		// JSON.
		Format LogFormat `key:"format" default:"auto"`
	} `key:"log"`
}
