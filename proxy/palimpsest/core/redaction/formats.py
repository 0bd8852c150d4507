"""
Formats of credentials: what they begin with, and what follows.

The formats are those that providers document. Each pattern is tried only where its first characters stand, and from
there it reads in one direction: no text costs more than a constant for each of its characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

from palimpsest.domain.frozen import frozen

# A credential begins a word; in JSON a line break is written \n, and in a URL a sign is written %3D.
_ESCAPED = r"(?<=\\[nrtbf])|(?<=\\u00[0-9A-Fa-f]{2})|(?<=%[0-9A-Fa-f]{2})"
_START = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED})"
_APART = rf"(?:(?<![\w~.-])|{_ESCAPED})"

LONG_CHARS = 20  # each of the long formats has as many without a space


@frozen
class Format:
    """
    One format.

    Args:
        anchor: stands in every credential of the format, one of the `behind` numbers of characters after its start.
        group: of the pattern: the secret itself.
        needs: a group that must be there, where the pattern reads on without it.
        command: whose option it is: stands in front of it in the same command.
        is_weak: the anchor is so common that the secret must also hold a digit.
    """

    kind: str
    anchor: str
    pattern: re.Pattern[str]
    behind: Sequence[int] = (0,)
    group: int = 0
    needs: int = 0
    command: str = ""
    is_weak: bool = False

    @property
    def begins_word(self) -> bool:
        """Whether the anchor stands at the beginning of a word."""
        return self.behind == (0,) and self.pattern.pattern.startswith(_START)


def _formats(kind: str, rest: str, *anchors: str) -> Iterator[Format]:
    """The formats of one line of the table."""
    for anchor in anchors:
        pattern = re.compile(_START + re.escape(anchor) + rest)
        yield Format(kind.rstrip("?"), anchor, pattern, is_weak=kind.endswith("?"))


# Kind, what follows the first characters, and those of each format. A question mark: see `Format.is_weak`.
_TABLE = """
anthropic-key       [\\w-]{16,}                 sk-ant-
openai-key          [\\w-]{20,}                 sk-proj- sk-svcacct- sk-admin-
openrouter-key      [\\w-]{20,}                 sk-or-
langfuse-key        [\\w-]{20,}                 sk-lf-
openai-key?         [A-Za-z0-9]{20,}            sk-
palimpsest-key      [\\w-]{43}                  plm_
perplexity-key      [A-Za-z0-9]{32,}            pplx-
replicate-token     [A-Za-z0-9]{32,}            r8_
fireworks-key?      [A-Za-z0-9]{20,}            fw_
tavily-key          [\\w-]{20,}                 tvly-
langsmith-key       (?:pt|sk)_[\\w-]{20,}       lsv2_
langsmith-key       [A-Za-z0-9]{20,}            ls__
groq-key            [A-Za-z0-9]{40,}            gsk_
xai-key             [A-Za-z0-9]{40,}            xai-
cerebras-key        [a-z0-9]{32,}               csk-
nvidia-key          [\\w-]{40,}                 nvapi-
jina-key            [A-Za-z0-9_-]{40,}          jina_
pinecone-key        \\w{40,}                    pcsk_
voyage-key?         [\\w-]{40,}                 pa-
firecrawl-key       [a-f0-9]{32}                fc-
e2b-key             [a-f0-9]{32,}               e2b_
elevenlabs-key      [a-f0-9]{48}                sk_
runpod-key          [A-Z0-9]{40,}               rpa_
huggingface-token   [A-Za-z0-9]{30,}            hf_ api_org_
wandb-key           [\\w-]{40,}                 wandb_v1_
cursor-key          [a-f0-9]{64}                key_
google-key          [\\w-]{35}                  AIza
google-key          Ab[\\w-]{40,}               AQ.
google-token        [\\w-]{20,}                 ya29.
google-token        [\\w-]{40,}                 1//0
google-secret       [\\w-]{20,}                 GOCSPX-
aws-access-key      [0-9A-Z]{16}                AKIA ASIA ABIA ACCA
aws-bedrock-key     [A-Za-z0-9+/]{100,}         ABSK
alibaba-key         [A-Za-z0-9]{20}             LTAI
tencent-key         [A-Za-z0-9]{32}             AKID
yandex-key          [\\w-]{35}                  AQVN
github-token        \\w{36,}                    ghp_ gho_ ghu_ ghs_ ghr_
github-token        \\w{22,}                    github_pat_
gitlab-token        [\\w-]{20,}                 glpat- gldt- glft- glffct- glsoat- glrt- glcbt- GR1348941
gitlab-token        [\\w-]{25}                  glimt-
gitlab-token        [\\w-]{40}                  glptt-
gitlab-token        [\\w-]{50,}                 glagent-
gitlab-token        [\\w-]{64}                  gloas-
bitbucket-token     [A-Za-z0-9]{28,}            ATBB
atlassian-token     [\\w=-]{100,}               ATATT3 ATCTT3
slack-token         [\\w-]{15,}                 xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxe-
slack-token         [\\w%-]{15,}                xoxd-
slack-token         xox[bp]-[\\w-]{10,}         xoxe.
slack-token         \\d-[\\w-]{13,}             xapp-
stripe-key          [0-9A-Za-z]{16,}            sk_live_ sk_test_ rk_live_ rk_test_
stripe-key          [0-9A-Za-z+/=]{16,}         whsec_
square-token        [\\w-]{40,}                 sq0csp-
square-token        [\\w-]{20,}                 sq0atp-
square-token        [\\w-]{56,}                 EAAA
facebook-token      [A-Za-z0-9]{80,}            EAA
paypal-token        (?:production|sandbox)\\$[a-z0-9]{16}\\$[a-f0-9]{32} access_token$
plaid-token         (?:sandbox|development|production)-[a-f0-9-]{36} access-
shopify-token       [a-fA-F0-9]{32}             shpat_ shpca_ shppa_ shpss_ shpua_
flutterwave-key     (?:_TEST)?-[A-Za-z0-9-]{20,} FLWSECK
shippo-token        [a-f0-9]{40}                shippo_live_
twilio-api-key      [a-f0-9]{32}                AC SK
sendgrid-api-key    [\\w-]{22}\\.[\\w-]{43}     SG.
mailgun-key         [a-f0-9]{32}                key-
brevo-key           [a-f0-9]{64}-\\w{10,}       xkeysib- xsmtpsib-
resend-key?         [A-Za-z0-9]{8}_[A-Za-z0-9]{20,} re_
npm-token           [A-Za-z0-9]{36}             npm_
pypi-token          [\\w-]{50,}                 pypi-
rubygems-token      [a-f0-9]{48}                rubygems_
crates-token        [A-Za-z0-9]{32}             cio
nuget-key           [a-z0-9]{43}                oy2
clojars-token       [a-z0-9]{60}                CLOJARS_
packagist-token     [a-z]{3}_[a-f0-9]{40,}      packagist_
docker-token        [\\w-]{20,}                 dckr_pat_ dckr_oat_
artifactory-token   [A-Za-z0-9]{50,}            AKCp
artifactory-token   [A-Za-z0-9]{40,}            cmVmdGtu
vault-token         [\\w-]{20,}                 hvs. hvb. hvr.
pulumi-token        [a-f0-9]{40}                pul-
doppler-token       (?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9._-]{30,} dp.
onepassword-token   eyJ[\\w=-]{40,}             ops_
planetscale-token   (?:tkn|oauth|pw)_[\\w.=-]{20,} pscale_
supabase-token      [\\w-]{40,}                 sbp_
supabase-key        [\\w-]{20,}                 sb_secret_
neon-key            [a-z0-9]{40,}               napi_
databricks-token    [a-f0-9]{32}                dapi
digitalocean-token  [a-f0-9]{64}                dop_v1_ doo_v1_ dor_v1_
heroku-key          [\\w-]{30,}                 HRKU-
netlify-token       [A-Za-z0-9]{36,}            nfp_
vercel-token        [A-Za-z0-9]{24,}            vcp_ vca_
vercel-token        \\w{20,}                    vercel_blob_rw_
fly-token           [\\w+/=-]{40,}              fm2_
fly-token           [\\w-]{40,}                 fo1_
render-key          [A-Za-z0-9]{20,}            rnd_
tailscale-key       (?:auth|api|client|scim|webhook)-[\\w-]{20,} tskey-
aiven-token         [\\w-]{18,}                 AVNS_
cloudflare-key      [a-f0-9]{24}-[a-f0-9]{100,} v1.0-
newrelic-key        [A-Z0-9]{27}                NRAK-
newrelic-key        [\\w-]{32}                  NRII-
grafana-token       [A-Za-z0-9+/]{32,}          glc_
grafana-token       [A-Za-z0-9]{32}_[a-fA-F0-9]{8} glsa_
sentry-token        eyJ[\\w+/=-]{40,}           sntrys_
sentry-token        [a-f0-9]{64}                sntryu_
posthog-key         [A-Za-z0-9]{40,}            phx_
dynatrace-token     [A-Z0-9]{24}\\.[A-Z0-9]{64} dt0c01.
dynatrace-token     [A-Z0-9]{8}\\.[A-Z0-9]{64}  dt0s16.
honeycomb-key       [a-z0-9]{50,}               hcaik_
prefect-key         [A-Za-z0-9]{36}             pnu_
airtable-token      [A-Za-z0-9]{14}\\.[a-f0-9]{64} pat
notion-token        [A-Za-z0-9]{40,}            ntn_
notion-token        [A-Za-z0-9]{43}             secret_
linear-key          [A-Za-z0-9]{32,}            lin_api_ lin_oauth_
figma-token         [\\w-]{40}                  figd_
postman-key         [a-f0-9]{24}-[a-f0-9]{34}   PMAK-
contentful-token    [\\w-]{43}                  CFPAT-
hubspot-token       (?:na|eu|ap)\\d-[a-f0-9-]{36} pat-
typeform-token      [\\w.-]{40,}                tfp_
readme-key          [a-z0-9]{70}                rdme_
dropbox-token       [\\w-]{100,}                sl.
twitter-token       [\\w%]{50,}                 AAAAAAAAAAAAAAA
mapbox-token        eyJ[\\w-]{20,}\\.[\\w-]{20,} sk.
circleci-token      [A-Za-z0-9]{22}_[a-f0-9]{40} CCIPAT_
buildkite-token     [a-f0-9]{40}                bkua_
sonarqube-token     [a-f0-9]{40}                sqp_ squ_ sqa_
sourcegraph-token   \\w{40,}                    sgp_
age-key             1[0-9A-Z]{40,}              AGE-SECRET-KEY-
wallet-key          [1-9A-HJ-NP-Za-km-z]{107}   xprv
"""

# Told by what stands around them; any length.
_GAP = r"\s{1,9}"
_ENTRY_ENDS = r"(?=\s{0,9}(?:\Z|[\r\n\"'\\]|machine\s))"
_NETRC = rf"{_GAP}\S{{1,100}}{_GAP}(?:account{_GAP}\S{{1,100}}{_GAP})?password{_GAP}(\S{{1,200}}){_ENTRY_ENDS}"
_USER_AND_SECRET = r"[\"']?(?!\$)[^\s:\"'$/]{1,100}:(?![$%{<*\d]{1,9}(?:[\s\"']|$))([^\s\"'$]{1,200})"
_ARGUMENT = r"[\"']?(?![$%{<*/-])([^\s\"'$]{3,200})"
_HEADER_SIGN = r"[\"'\\]{0,3}\s{0,3}[:=]\s{0,3}[\"'\\]{0,3}"
_SCHEME = r"(?i:bearer|basic|token|apikey)\s{1,3}"


@lru_cache(1)
def long_formats() -> tuple[Format, ...]:
    """Formats with at least `LONG_CHARS` without a space. The first call compiles them, in 50 ms."""
    return (
        *chain.from_iterable(_formats(*line.split()) for line in _TABLE.strip().splitlines()),
        Format("json-web-token", "eyJ", re.compile(_START + r"eyJ[\w=-]{8,}(\.[\w=-]{8,})?"), needs=1),
        Format("private-key", "LS0tLS1CRUdJTi", re.compile(r"LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM)[\w+/]{16,}={0,2}")),
        Format("mailchimp-access-key", "-us", re.compile(_START + r"[0-9a-f]{32}-us\d{1,2}(?!\w)"), behind=(32,)),
        Format("telegram-bot-token", ":AA", re.compile(r"(?<!\d)\d{8,10}:AA[\w-]{33}(?![\w-])"), behind=(8, 9, 10)),
        Format(
            "terraform-token", ".atlasv1.", re.compile(_APART + r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}"), behind=(14,)
        ),
        Format("azure-secret", "Q~", re.compile(_APART + r"[\w~.-]{3}\dQ~[\w~.-]{31,34}"), behind=(4,)),
        Format("azure-key", "AZDO", re.compile(_APART + r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?!\w)"), behind=(76,)),
        Format(
            "azure-key",
            "JQQJ99",
            re.compile(_APART + r"[A-Za-z0-9]{40,60}JQQJ99[A-Za-z0-9]{10,40}(?!\w)"),
            behind=range(40, 61),
        ),
        Format(
            "discord-bot-token", ".", re.compile(_APART + r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38}"), (24, 25, 26)
        ),
        Format("discord-webhook", "/webhooks/", re.compile(r"/webhooks/\d{10,20}/([\w-]{40,})"), group=1),
        Format("slack-token", "hooks.slack.com/", re.compile(r"hooks\.slack\.com/\w{1,20}/([\w/]{20,})"), group=1),
        Format("npm-token", "_authToken", re.compile(r"_authToken\s{0,3}=\s{0,3}([\w-]{20,})"), group=1),
        Format("azure-key", "AccountKey=", re.compile(r"AccountKey=([A-Za-z0-9+/=]{40,})"), group=1),
        Format("azure-key", "SharedAccessKey=", re.compile(r"SharedAccessKey=([A-Za-z0-9+/=]{30,})"), group=1),
        Format("url-signature", "ignature=", re.compile(r"ignature=([\w%~+/=-]{20,})"), group=1),
        Format("url-signature", "sig=", re.compile(r"[?&;]sig=([\w%+/=-]{30,})"), (1,), group=1),
        Format("url-signature", "X-Amz-", re.compile(r"X-Amz-Security-Token=([\w%+/=-]{16,})"), group=1),
    )


@lru_cache(1)
def short_formats() -> tuple[Format, ...]:
    """Formats that are recognised by the text around them; any length."""
    return (
        *(
            Format("authorization", header, re.compile(rf"{header}{_HEADER_SIGN}{_SCHEME}([\w.~+/=-]{{8,}})"), group=1)
            for header in ("uthorization", "UTHORIZATION")
        ),
        Format("authorization", "earer ", re.compile(r"earer {1,3}([\w.~+/=-]{20,})"), group=1, is_weak=True),
        Format(
            "basic-auth-credentials",
            "://",
            re.compile(r"://[^\s:/?#\[\]@\"'`<>\\]{0,128}:(?![$%{<*])([^\s:/?#\[\]@\"'`<>\\]{1,128})@"),
            group=1,
        ),
        Format(
            "cookie",
            "ookie",
            re.compile(
                r"ookie[\"'\\]{0,3}\s?:\s{0,3}[\"'\\]{0,3}([\w.-]{1,100}=[^\s;,\"'\\]{4,}(?:; ?[^\r\n\"'\\]+)?)"
            ),
            group=1,
        ),
        Format(
            "cookie",
            "OOKIE",
            re.compile(r"OOKIE\s?:\s{0,3}([\w.-]{1,100}=[^\s;,\"'\\]{4,}(?:; ?[^\r\n\"'\\]+)?)"),
            group=1,
        ),
        Format("password", "machine", re.compile(rf"machine{_GAP}\S{{1,100}}{_GAP}login{_NETRC}"), group=1),
        Format("password", "default", re.compile(rf"default{_GAP}login{_NETRC}"), group=1),
        Format("password", " -u", re.compile(rf" -u[ =]?{_USER_AND_SECRET}"), group=1, command="curl"),
        Format("password", " --user", re.compile(rf" --user[ =]{_USER_AND_SECRET}"), group=1, command="curl"),
        Format(
            "password", " --proxy-user", re.compile(rf" --proxy-user[ =]{_USER_AND_SECRET}"), group=1, command="curl"
        ),
        Format("password", " -p", re.compile(rf" -p{_ARGUMENT}"), group=1, command="mysql"),  # no space: it would ask
        Format("password", " -p", re.compile(rf" -p{_ARGUMENT}"), group=1, command="mariadb"),
        Format("password", " -p", re.compile(rf" -p ?{_ARGUMENT}"), group=1, command="sshpass"),
        Format("password", " -p", re.compile(rf" -p ?{_ARGUMENT}"), group=1, command="docker login"),
        Format("password", " -a", re.compile(rf" -a {_ARGUMENT}"), group=1, command="redis-cli"),
    )
