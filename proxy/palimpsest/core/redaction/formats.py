"""
Formats of credentials: what they begin with, and what follows.

The formats are those that providers document. Each pattern is tried only where its first characters stand, and from
there it reads in one direction: no text costs more than a constant for each of its characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

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


def _format(kind: str, anchor: str, rest: str) -> Format:
    is_weak = kind.endswith("?")
    return Format(kind.rstrip("?"), anchor, re.compile(_START + re.escape(anchor) + rest), is_weak=is_weak)


# Kind, first characters, the rest. A question mark: see `Format.is_weak`.
_TABLE = """
anthropic-key       sk-ant-         [\\w-]{16,}
openai-key          sk-proj-        [\\w-]{20,}
openai-key          sk-svcacct-     [\\w-]{20,}
openai-key          sk-admin-       [\\w-]{20,}
openrouter-key      sk-or-          [\\w-]{20,}
langfuse-key        sk-lf-          [\\w-]{20,}
openai-key?         sk-             [A-Za-z0-9]{20,}
palimpsest-key      plm_            [\\w-]{43}
perplexity-key      pplx-           [A-Za-z0-9]{32,}
replicate-token     r8_             [A-Za-z0-9]{32,}
fireworks-key?      fw_             [A-Za-z0-9]{20,}
tavily-key          tvly-           [\\w-]{20,}
langsmith-key       lsv2_           (?:pt|sk)_[\\w-]{20,}
langsmith-key       ls__            [A-Za-z0-9]{20,}
groq-key            gsk_            [A-Za-z0-9]{40,}
xai-key             xai-            [A-Za-z0-9]{40,}
cerebras-key        csk-            [a-z0-9]{32,}
nvidia-key          nvapi-          [\\w-]{40,}
jina-key            jina_           [A-Za-z0-9_-]{40,}
pinecone-key        pcsk_           \\w{40,}
voyage-key?         pa-             [\\w-]{40,}
firecrawl-key       fc-             [a-f0-9]{32}
e2b-key             e2b_            [a-f0-9]{32,}
elevenlabs-key      sk_             [a-f0-9]{48}
runpod-key          rpa_            [A-Z0-9]{40,}
huggingface-token   hf_             [A-Za-z0-9]{30,}
huggingface-token   api_org_        [A-Za-z0-9]{30,}
wandb-key           wandb_v1_       [\\w-]{40,}
cursor-key          key_            [a-f0-9]{64}
google-key          AIza            [\\w-]{35}
google-key          AQ.             Ab[\\w-]{40,}
google-token        ya29.           [\\w-]{20,}
google-token        1//0            [\\w-]{40,}
google-secret       GOCSPX-         [\\w-]{20,}
aws-access-key      AKIA            [0-9A-Z]{16}
aws-access-key      ASIA            [0-9A-Z]{16}
aws-access-key      ABIA            [0-9A-Z]{16}
aws-access-key      ACCA            [0-9A-Z]{16}
aws-bedrock-key     ABSK            [A-Za-z0-9+/]{100,}
alibaba-key         LTAI            [A-Za-z0-9]{20}
tencent-key         AKID            [A-Za-z0-9]{32}
yandex-key          AQVN            [\\w-]{35}
github-token        ghp_            \\w{36,}
github-token        gho_            \\w{36,}
github-token        ghu_            \\w{36,}
github-token        ghs_            \\w{36,}
github-token        ghr_            \\w{36,}
github-token        github_pat_     \\w{22,}
gitlab-token        glpat-          [\\w-]{20,}
gitlab-token        gldt-           [\\w-]{20,}
gitlab-token        glft-           [\\w-]{20,}
gitlab-token        glffct-         [\\w-]{20,}
gitlab-token        glsoat-         [\\w-]{20,}
gitlab-token        glrt-           [\\w-]{20,}
gitlab-token        glcbt-          [\\w-]{20,}
gitlab-token        glimt-          [\\w-]{25}
gitlab-token        glptt-          [\\w-]{40}
gitlab-token        glagent-        [\\w-]{50,}
gitlab-token        gloas-          [\\w-]{64}
gitlab-token        GR1348941       [\\w-]{20,}
bitbucket-token     ATBB            [A-Za-z0-9]{28,}
atlassian-token     ATATT3          [\\w=-]{100,}
atlassian-token     ATCTT3          [\\w=-]{100,}
slack-token         xoxb-           [\\w-]{15,}
slack-token         xoxp-           [\\w-]{15,}
slack-token         xoxa-           [\\w-]{15,}
slack-token         xoxr-           [\\w-]{15,}
slack-token         xoxs-           [\\w-]{15,}
slack-token         xoxo-           [\\w-]{15,}
slack-token         xoxc-           [\\w-]{15,}
slack-token         xoxd-           [\\w%-]{15,}
slack-token         xoxe-           [\\w-]{15,}
slack-token         xoxe.           xox[bp]-[\\w-]{10,}
slack-token         xapp-           \\d-[\\w-]{13,}
stripe-key          sk_live_        [0-9A-Za-z]{16,}
stripe-key          sk_test_        [0-9A-Za-z]{16,}
stripe-key          rk_live_        [0-9A-Za-z]{16,}
stripe-key          rk_test_        [0-9A-Za-z]{16,}
stripe-key          whsec_          [0-9A-Za-z+/=]{16,}
square-token        sq0csp-         [\\w-]{40,}
square-token        sq0atp-         [\\w-]{20,}
square-token        EAAA            [\\w-]{56,}
facebook-token      EAA             [A-Za-z0-9]{80,}
paypal-token        access_token$   (?:production|sandbox)\\$[a-z0-9]{16}\\$[a-f0-9]{32}
plaid-token         access-         (?:sandbox|development|production)-[a-f0-9-]{36}
shopify-token       shpat_          [a-fA-F0-9]{32}
shopify-token       shpca_          [a-fA-F0-9]{32}
shopify-token       shppa_          [a-fA-F0-9]{32}
shopify-token       shpss_          [a-fA-F0-9]{32}
shopify-token       shpua_          [a-fA-F0-9]{32}
flutterwave-key     FLWSECK         (?:_TEST)?-[A-Za-z0-9-]{20,}
shippo-token        shippo_live_    [a-f0-9]{40}
twilio-api-key      AC              [a-f0-9]{32}
twilio-api-key      SK              [a-f0-9]{32}
sendgrid-api-key    SG.             [\\w-]{22}\\.[\\w-]{43}
mailgun-key         key-            [a-f0-9]{32}
brevo-key           xkeysib-        [a-f0-9]{64}-\\w{10,}
brevo-key           xsmtpsib-       [a-f0-9]{64}-\\w{10,}
resend-key?         re_             [A-Za-z0-9]{8}_[A-Za-z0-9]{20,}
npm-token           npm_            [A-Za-z0-9]{36}
pypi-token          pypi-           [\\w-]{50,}
rubygems-token      rubygems_       [a-f0-9]{48}
crates-token        cio             [A-Za-z0-9]{32}
nuget-key           oy2             [a-z0-9]{43}
clojars-token       CLOJARS_        [a-z0-9]{60}
packagist-token     packagist_      [a-z]{3}_[a-f0-9]{40,}
docker-token        dckr_pat_       [\\w-]{20,}
docker-token        dckr_oat_       [\\w-]{20,}
artifactory-token   AKCp            [A-Za-z0-9]{50,}
artifactory-token   cmVmdGtu        [A-Za-z0-9]{40,}
vault-token         hvs.            [\\w-]{20,}
vault-token         hvb.            [\\w-]{20,}
vault-token         hvr.            [\\w-]{20,}
pulumi-token        pul-            [a-f0-9]{40}
doppler-token       dp.             (?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9._-]{30,}
onepassword-token   ops_            eyJ[\\w=-]{40,}
planetscale-token   pscale_         (?:tkn|oauth|pw)_[\\w.=-]{20,}
supabase-token      sbp_            [\\w-]{40,}
supabase-key        sb_secret_      [\\w-]{20,}
neon-key            napi_           [a-z0-9]{40,}
databricks-token    dapi            [a-f0-9]{32}
digitalocean-token  dop_v1_         [a-f0-9]{64}
digitalocean-token  doo_v1_         [a-f0-9]{64}
digitalocean-token  dor_v1_         [a-f0-9]{64}
heroku-key          HRKU-           [\\w-]{30,}
netlify-token       nfp_            [A-Za-z0-9]{36,}
vercel-token        vcp_            [A-Za-z0-9]{24,}
vercel-token        vca_            [A-Za-z0-9]{24,}
vercel-token        vercel_blob_rw_ \\w{20,}
fly-token           fm2_            [\\w+/=-]{40,}
fly-token           fo1_            [\\w-]{40,}
render-key          rnd_            [A-Za-z0-9]{20,}
tailscale-key       tskey-          (?:auth|api|client|scim|webhook)-[\\w-]{20,}
aiven-token         AVNS_           [\\w-]{18,}
cloudflare-key      v1.0-           [a-f0-9]{24}-[a-f0-9]{100,}
newrelic-key        NRAK-           [A-Z0-9]{27}
newrelic-key        NRII-           [\\w-]{32}
grafana-token       glc_            [A-Za-z0-9+/]{32,}
grafana-token       glsa_           [A-Za-z0-9]{32}_[a-fA-F0-9]{8}
sentry-token        sntrys_         eyJ[\\w+/=-]{40,}
sentry-token        sntryu_         [a-f0-9]{64}
posthog-key         phx_            [A-Za-z0-9]{40,}
dynatrace-token     dt0c01.         [A-Z0-9]{24}\\.[A-Z0-9]{64}
dynatrace-token     dt0s16.         [A-Z0-9]{8}\\.[A-Z0-9]{64}
honeycomb-key       hcaik_          [a-z0-9]{50,}
prefect-key         pnu_            [A-Za-z0-9]{36}
airtable-token      pat             [A-Za-z0-9]{14}\\.[a-f0-9]{64}
notion-token        ntn_            [A-Za-z0-9]{40,}
notion-token        secret_         [A-Za-z0-9]{43}
linear-key          lin_api_        [A-Za-z0-9]{32,}
linear-key          lin_oauth_      [A-Za-z0-9]{32,}
figma-token         figd_           [\\w-]{40}
postman-key         PMAK-           [a-f0-9]{24}-[a-f0-9]{34}
contentful-token    CFPAT-          [\\w-]{43}
hubspot-token       pat-            (?:na|eu|ap)\\d-[a-f0-9-]{36}
typeform-token      tfp_            [\\w.-]{40,}
readme-key          rdme_           [a-z0-9]{70}
dropbox-token       sl.             [\\w-]{100,}
twitter-token       AAAAAAAAAAAAAAA [\\w%]{50,}
mapbox-token        sk.             eyJ[\\w-]{20,}\\.[\\w-]{20,}
circleci-token      CCIPAT_         [A-Za-z0-9]{22}_[a-f0-9]{40}
buildkite-token     bkua_           [a-f0-9]{40}
sonarqube-token     sqp_            [a-f0-9]{40}
sonarqube-token     squ_            [a-f0-9]{40}
sonarqube-token     sqa_            [a-f0-9]{40}
sourcegraph-token   sgp_            \\w{40,}
age-key             AGE-SECRET-KEY- 1[0-9A-Z]{40,}
wallet-key          xprv            [1-9A-HJ-NP-Za-km-z]{107}
"""

# Told by what stands around them; any length.
_GAP = r"\s{1,9}"
_ENTRY_ENDS = r"(?=\s{0,9}(?:\Z|[\r\n\"'\\]|machine\s))"
_NETRC = rf"{_GAP}\S{{1,100}}{_GAP}(?:account{_GAP}\S{{1,100}}{_GAP})?password{_GAP}(\S{{1,200}}){_ENTRY_ENDS}"
_USER_AND_SECRET = r"[\"']?(?!\$)[^\s:\"'$/]{1,100}:(?![$%{<*\d]{1,9}(?:[\s\"']|$))([^\s\"'$]{1,200})"
_ARGUMENT = r"[\"']?(?![$%{<*/-])([^\s\"'$]{3,200})"
_HEADER_SIGN = r"[\"'\\]{0,3}\s{0,3}[:=]\s{0,3}[\"'\\]{0,3}"


@lru_cache(1)
def long_formats() -> tuple[Format, ...]:
    """Formats with at least `LONG_CHARS` without a space. The first call compiles them, in 50 ms."""
    return (
        *(_format(*line.split()) for line in _TABLE.strip().splitlines()),
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
    """Formats that are told by what stands around them; any length."""
    return (
        Format(
            "authorization",
            "uthorization",
            re.compile(rf"uthorization{_HEADER_SIGN}(?i:bearer|basic|token|apikey)\s{{1,3}}([\w.~+/=-]{{8,}})"),
            group=1,
        ),
        Format(
            "authorization",
            "UTHORIZATION",
            re.compile(rf"UTHORIZATION{_HEADER_SIGN}(?i:bearer|basic|token|apikey)\s{{1,3}}([\w.~+/=-]{{8,}})"),
            group=1,
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
