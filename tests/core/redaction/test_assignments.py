"""What is assigned to the name of a secret leaves; code, prose and numbers stay. All secrets here are made up."""

from __future__ import annotations

from base64 import b64encode

import pytest
from palimpsest.core.redaction.redaction import redact

MADE = "aB3dE5gH7jK9mN1pQ2rS4tU6"
BASIC = b64encode(b"ann:" + MADE.encode()).decode()

# What leaves is written between ‹ and ›.
SECRETS = {
    "password": "password: ‹hunter2›",
    "password in German": "Passwort: ‹geheim77›",
    "plain word": "password: ‹swordfish›\n",
    "plain word in JSON": r'{"yaml": "password: ‹swordfish›\nuser: ann"}',
    "quoted with a quote inside": """password = "‹it's7ann›" """,
    "quoted with an escape inside": r"""password = "‹a\"b7ann›" """,
    "quoted passphrase": 'passphrase: "‹correct horse battery staple›"',
    "quoted password of words": "PASSWORD='‹correct horse battery staple›'",
    "XML": "<db><Password>‹hunter2›</Password></db>",
    "XML with a prefix": "<cfg:password>‹hunter2›</cfg:password>",
    "item of a dictionary": 'config["password"] = "‹hunter2›"',
    "camel case token": f'accessToken: "‹{MADE}›"',
    "option": "deploy --password ‹x7ann› --force",
    "option, plain word": "deploy --password ‹swordfish› --force",
    "option, last": "deploy --password ‹swordfish›",
    "option with equals sign": "deploy --token=‹swordfish› now",
    "option in quotes": "deploy --api-key '‹swordfish›'",
    "option, one dash": "Connect -Password ‹hunter2›",
    "pass": "tool --pass ‹hunter2›",
    "smtp_pass": "SMTP_PASS=‹hunter2›",
    "token": f"token: ‹{MADE}›",
    "token in quotes": f'"token": "‹{MADE}›"',
    "TOKEN": "TOKEN=‹swordfish›",
    "export": "export FOO_TOKEN=‹swordfish› BAR=1",
    "header": f"PRIVATE-TOKEN: ‹{MADE[:12]}›",
    "header in JSON": f'{{"X-Auth-Token": "‹{MADE[:12]}›"}}',
    "vault header": f"X-Vault-Token: ‹{MADE}›",
    "told in prose": "the database password is ‹swordfishABC9› on all hosts",
    "told in prose, in German": "Das Passwort lautet ‹Sommer2024!›",
    "API key in prose": f"My API key: ‹{MADE}› and so on",
    "key of a service": f"AZURE_SEARCH_KEY=‹{MADE}{MADE}›",
    "signing key": f"signing_key: ‹{MADE}›",
    "service role key": f"SUPABASE_SERVICE_ROLE_KEY=‹{MADE}›",
    "aws secret": f"aws_secret_access_key = ‹{MADE}/+{MADE}›",
    "docker auth": f'{{"auths": {{"x.io": {{"auth": "‹{BASIC}›"}}}}}}',
    "npmrc": f"//registry/:_auth=‹{BASIC}›",
    "mnemonic": "mnemonic: ‹legal winner thank year wave sausage worth useful legal winner thank yellow›",
    "seed phrase": 'seed phrase = "‹legal winner thank year wave sausage worth useful legal winner thank yellow›"',
    "escaped twice": r"{\\\"password\\\": \\\"‹hunter2›\\\"}",
    "kubernetes": f'stringData:\n  password: "‹{MADE}›"\n',
    "long value": f"client_secret = ‹{MADE * 400}›",
    "Turkish": "İİİ password: ‹hunter2›",
    # told by a command, a header or an address
    "curl": "curl -s -u ann:‹hunter2› https://x.y",
    "curl, quoted": "curl https://x.y --user 'ann:‹hunter2›'",
    "curl over lines": "curl https://x.y \\\n  -u ann:‹hunter2›",
    "mysql": "mysql -h db -u root -p‹hunter2› shop",
    "mysqldump": "mysqldump -uroot -p'‹hunter2›' shop > x.sql",
    "sshpass": "sshpass -p ‹hunter2› ssh ann@host",
    "redis-cli": "redis-cli -h x -a ‹hunter2› ping",
    "docker login": "docker login -u ann -p ‹hunter2› x.io",
    "netrc": "machine x.y login ann password ‹hunter2›",
    "netrc over lines": "machine x.y\n  login ann\n  password ‹hunter2›\n",
    "netrc default": "default login ann password ‹hunter2›",
    "cookie": "Cookie: ‹session=abcdef123; theme=dark›\nAccept: */*",
    "set-cookie": "set-cookie: ‹sid=abcdef123; Path=/; HttpOnly›\r\nx: y",
    "cookie in JSON": '{"Cookie": "‹session=abcdef123›"}',
    "redis address": "redis://:‹hunter2›@cache:6379/0",
    "postgres address": "postgres://ann:‹hun!ter$2›@db:5432/x",
    "amz signature": f"https://b.s3/x?X-Amz-Date=1&X-Amz-Signature=‹{MADE * 2}›&y=1",
    "amz session": f"https://b.s3/x?X-Amz-Security-Token=‹{MADE}%2F{MADE}›&y=1",
    "goog signature": f"https://storage/x?X-Goog-Signature=‹{MADE * 2}›",
    "azure signature": f"https://x.blob/y?sv=1&sig=‹{MADE}{MADE}%3D›&se=2",
    "bearer": f"-H 'authorization: bearer ‹{MADE}›'",
    "bearer alone": f'headers = {{"auth": f"Bearer ‹{MADE}›"}}',
    "npmrc token": f"//registry.npmjs.org/:_authToken=‹{MADE[:8]}-{MADE}›",
    "slack webhook": f"https://hooks.slack.com/services/‹T{MADE[:8]}/B{MADE[:8]}/{MADE}›",
    "discord webhook": f"https://discord.com/api/webhooks/123456789012345678/‹{MADE}{MADE}{MADE}›",
    "azure connection": f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey=‹{MADE}{MADE}==›;E=1",
    "kubeconfig": f"    client-key-data: ‹LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo{MADE}==›\n",
}


@pytest.mark.parametrize("marked", SECRETS.values(), ids=SECRETS)
def test_a_secret_leaves_and_nothing_around_it(marked: str) -> None:
    before, _, rest = marked.partition("‹")
    secret, _, behind = rest.partition("›")
    cleaned = redact(before + secret + behind)
    assert cleaned.startswith(before + "[redacted:") and cleaned.endswith("]" + behind)
    assert secret not in cleaned and cleaned.count("[redacted:") == 1
    assert redact(cleaned) == cleaned


STAY = [
    "max_tokens: 4096, token: the smallest unit, tokens: 12",
    "generate --token-limit 5 --max-tokens=100 --tokenizer cl100k",
    "the password field is required",
    "The password is base64-encoded, the passphrase is sha256-hashed, and the password is incorrect.",
    "password: the field is required, and `token: string` is next",
    "Token: an identifier, a literal or a sign.",
    "token = tokens[at]; token = self.next_token(); token=lexer.peek",
    '{"token": " the", "logprob": -0.12}',
    '{"token": "identifier2", "kind": "NAME"}',
    "next_token=CAUQAA1b2c3d4e5f6 pageToken: abc123def456ghi789",
    "eos_token: 50256, pad_token=a1b2c3d4e5f6",
    "run it with the --password flag, or --token flag",
    "the --token option",
    'key: "a1b2c3", cache_key=9fceb02d0ae598e95dc970b74767f19372d61af8',
    'queryKey: "userSettings", STORAGE_KEY = "myAppSettingsVersion2", primary_key=True',
    "key=lambda x: x[1], KEY_ENTER=13, keyboard: qwerty123",
    f"CLERK_PUBLISHABLE_KEY={MADE}{MADE}",
    "--- PASS: TestParse/10MB_line (0.06s)",
    "Pass: 3, Fail: 2, bypass: yes2",
    '"auth": "required", auth: basic64, "auth": "aGVsbG8gd29ybGQ="',
    '"password": "Enter your password here", "secret": "This is not a good one"',
    "passport: AB123456, compass: n270, password_hash: bool",
    'password: "{{ vault_password }}"',
    "refreshTokens[refreshToken] = userId;",
    'password: "REDACTED"',
    "git log --author=ann -p --user x:y",
    "docker run -u 1000:1000 -p 8080:80 mysql",
    "mkdir -p/tmp/x; ssh -p2222 host; mysql -p; mysql -p shop",
    "machine learning login page password reset is broken",
    "Cookie: a small text file",
    "chocolate cookie: 2 eggs",
    "https://example.com:8080/a@b, http://[::1]:80/@x, ftp://${USER}:${PASSWORD}@host",
    "the signature=valid, sig=ok",
    "the bearer of good news is a very-long-hyphenated-word-without-digits",
    "mnemonic: a word that is easy to remember",
    "<label>Password</label><input name='password' type='password'>",
    "authorization: required; Authorization: Bearer <token>",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "s.lookupItemsForUser2(arg), hf_transformers_version_4, key_press_and_hold_1",
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUMvekNDQWVlZ0F3SUJBZ0lCQURBTkJna3Foa2lHOXcw",
    'if (line.startsWith("-----BEGIN PRIVATE KEY-----") && line.endsWith("-----END PRIVATE KEY-----"))',
    "arn:aws:iam::123456789012:role/some-role-name-with-a-long-tail",
    "npm_config_registry=https://registry.npmjs.org/ npm_package_version=1.2.3",
    "00000000-0000-4000-8000-000000000001 toolu_01A09q90qw90lq917835lq9 msg_013Zva2CMHLNnXjNJJKqJ2EF",
    "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b fc_12345xyzabcdef rs_68af4030baa48193b0b43b4c2a176a1a",
]


@pytest.mark.parametrize("text", STAY)
def test_code_prose_numbers_and_ids_stay(text: str) -> None:
    assert redact(text) == text
