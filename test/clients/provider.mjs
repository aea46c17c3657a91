// Serves node-oidc-provider as another OpenID provider, until the standard input ends. The provider's
// own pages accept any name, and the account's email address is this name.
import Provider from 'oidc-provider'

const settings = JSON.parse(process.env.SETTINGS)
const provider = new Provider(settings.issuer, {
  clients: [{ client_id: 'selvage', client_secret: settings.client_secret, redirect_uris: [settings.redirect_uri],
    post_logout_redirect_uris: [settings.logout_uri] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['given_name', 'family_name'] },
  findAccount: (_, id) => ({ accountId: id,
    claims: () => ({ sub: id, email: id, email_verified: true, given_name: 'Grace', family_name: 'Hopper' }) }),
  pkce: { required: () => true },
})
provider.on('server_error', (_, err) => console.error(err))
const { hostname, port } = new URL(settings.issuer)
provider.listen(Number(port), hostname, () => process.stdout.write('ready\n'))
process.stdin.resume().on('end', () => process.exit(0))
