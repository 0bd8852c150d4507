"""
Words by which people refer to themselves, look back, ask and make small talk, in 25 languages with spaces and 4 without.

Each table says of a language which words are of one kind, lower case, accents and umlauts taken off as
`core/recall/utterance.py` takes them off. They are no dictionaries: a few dozen words a kind, those that occur most. A language
that is missing here is read by meaning and by shared words alone.
"""

from __future__ import annotations

# Words that hold a sentence together. They tell its language and are dropped from questions.
FUNCTION = {
    "en": "a an the and or but if of in on at to for from with by as is are was were be been has have had do does did "
    "will would can could should may might must not no it its this that these those he she they them his her their "
    "there here what which who whom whose when where why how than then so just also very about into over up out you "
    "your all any some more most other only own same too s t d ll re ve m",
    "de": "der die das den dem des ein eine einen einem einer eines und oder aber wenn von in im an am zu zum zur fur mit "
    "bei als ist sind war waren sein hat haben hatte wird werden wurde kann konnen soll sollte muss nicht kein keine es "
    "er sie ihm ihr ihre sein seine da hier was welche welcher welches wer wen wem wann wo warum wie auf aus nach uber "
    "unter auch nur noch schon sehr mehr man sich dass doch mal denn du dein deine bitte so um vor bis ob",
    "fr": "le la les un une des du de et ou mais si en dans sur au aux pour par avec est sont etait etaient etre a ont avait "
    "sera peut doit ne pas plus il elle ils elles on lui leur son sa ses ce cette ces ca cela qui que quoi quel quelle "
    "quels quelles quand comment pourquoi combien d l s c qu y aussi tres tout tous tu te ton ta tes vous votre se",
    "es": "el la los las un una unos unas y o pero si de del en a al por para con es son era eran ser esta estan ha han "
    "habia puede debe no mas se su sus lo le les este esta ese esa esto eso que quien cual cuales cuando donde como "
    "cuanto cuanta cuantos por muy tambien todo ya tu te hay sin sobre",
    "it": "il lo la i gli le un una uno e o ma se di del della dei delle in nel nella a al alla ai alle da dal per con e sono "
    "era erano essere ha hanno aveva puo deve non piu si suo sua suoi sue questo questa quello quella che chi quale "
    "quali quando dove come perche quanto quanta quanti anche molto tutto c l d ti tu tuo su",
    "pt": "o a os as um uma uns umas e ou mas se de do da dos das em no na nos nas ao aos por para pelo pela com e sao era "
    "eram ser esta estao tem ha tinha pode deve nao mais seu sua seus suas este esta esse essa isto isso que quem qual "
    "quais quando onde como quanto quanta quantos porque muito tambem tudo ja te tu voce foi",
    "nl": "de het een en of maar als van in op aan te tot voor met bij is zijn was waren heeft hebben had wordt werd kan "
    "kunnen moet zal niet geen hij zij ze hem haar hun er hier dat dit deze die wat welke wie wanneer waar waarom hoe "
    "ook nog al zeer meer je jij jouw naar uit over om dan",
    "sv": "en ett den det de och eller men om av i pa till for fran med som ar var vara har hade kan ska skulle inte "
    "ingen han hon hans hennes deras har dar detta denna vad vilken vilket vilka vem nar var varfor hur ocksa mycket mer "
    "du din ditt sig ut upp vid efter",
    "da": "en et den det de og eller men om af i pa til for fra med som er var vaere har havde kan skal ikke ingen han hun "
    "hans hendes deres her der dette denne hvad hvilken hvilket hvem hvornar hvor hvorfor hvordan ogsa meget mere du din",
    "no": "en et den det de og eller men om av i pa til for fra med som er var vaere har hadde kan skal ikke ingen han hun "
    "hans hennes deres her der dette denne hva hvilken hvilket hvem nar hvor hvorfor hvordan ogsa mye mer du din",
    "fi": "ja tai mutta jos on oli olla ovat ei han se ne tama tuo nama mika mita missa milloin kuka kenen miten miksi "
    "kuinka myos vain kun kuin etta sina sinun voi pitaa joka",
    "pl": "i lub albo ale jesli z ze w we na do od po dla przez za o jest sa byl byla bylo byly byc ma nie tak to ten ta te "
    "tego tej tych on ona ono oni jego jej ich co ktory ktora ktore kto kiedy gdzie dlaczego jak ile czy tez tylko juz "
    "jeszcze bardzo sie u przy ty twoj",
    "cs": "a nebo ale jestli z ze v ve na do od po pro za o je jsou byl byla bylo byly byt ma ne tak to ten ta te toho on "
    "ona oni jeho jeji jejich co ktery ktera ktere kdo kdy kde proc jak kolik taky jen uz jeste velmi se si u pri ty",
    "uk": "і й та або але якщо з із зі в у на до від по для про за о є був була було були бути має не так це цей ця ці "
    "він вона воно вони його її їх що який яка яке які хто коли де чому як скільки чи також тільки вже ще дуже ти твій",
    "ru": "и или но если с из в во на до от по для про за о об есть был была было были быть не да это этот эта эти он она "
    "оно они его ее их что какой какая какое какие кто когда где куда почему как сколько ли также только уже еще очень "
    "ты твой а же бы к ко у при чем",
    "tr": "ve veya ya ama eger bir bu su o da de ki mi mu ile icin gibi kadar daha en cok degil var yok ne hangi kim "
    "kimin zaman nerede neden nasil kac sen senin olan olarak her",
    "hi": "और या लेकिन अगर का की के को में पर से तक है हैं था थी थे हो नहीं यह ये वह वे इस उस क्या कौन कौनसा कब कहाँ कहां क्यों कैसे कितना "
    "कितने कितनी भी ही तो कर के लिए ने एक तुम आप आपका",
    "ar": "و او أو لكن إذا من في على إلى الى عن مع هو هي هم كان كانت يكون لا ليس هذا هذه ذلك تلك ما ماذا من متى أين اين لماذا "
    "كيف كم هل أي اي الذي التي قد أن ان بعد قبل",
    "fa": "و یا اما اگر از در به با بر برای تا که این آن او آنها است بود بودند هست نیست را چه کدام کی کجا چرا چگونه چطور "
    "چند هم هر یک تو شما می",
    "he": "ו או אבל אם של על אל עם את הוא היא הם היה היתה לא זה זאת זו אלה מה מי מתי איפה למה איך כמה האם גם רק כבר עוד יש אין",
    "el": "ο η το οι τα του της των και ή αλλα αν σε στο στη στην με για απο ειναι ηταν δεν θα να που τι ποιος ποια ποιο "
    "ποτε πως γιατι ποσο αυτο αυτη αυτος σου",
    "ro": "un o si sau dar daca de la in pe cu pentru din este sunt era erau a fi are au nu mai el ea ei lui lor acest "
    "aceasta acel care ce cine cand unde cum cat de si doar foarte tu tau se",
    "hu": "a az egy es vagy de ha van volt voltak lesz nem o ok ez az ezek mi melyik ki mikor hol miert hogyan hany mennyi "
    "is csak mar meg nagyon te hogy",
    "vi": "va hoac nhung neu cua o tren cho voi tu den la co khong da se duoc nay kia do no ho gi nao ai khi dau sao the "
    "bao nhieu cung chi rat cac nhung mot ban",
    "id": "dan atau tetapi tapi jika kalau dari di ke pada untuk dengan adalah ada tidak bukan ini itu dia mereka apa yang "
    "mana siapa kapan dimana mengapa kenapa bagaimana berapa juga hanya sudah sangat akan kamu anda sebuah",
}

# Words by which speakers name themselves and what is theirs.
OWN = {
    "en": "i my mine me myself we our ours us im ive id ill",
    "de": "ich mein meine meinen meinem meiner meines mir mich wir unser unsere unseren unserem unserer uns",
    "fr": "je j mon ma mes me moi m nous notre nos mien mienne",
    "es": "yo mi mis me mio mia conmigo nosotros nosotras nuestro nuestra nuestros nuestras nos tengo tenemos soy somos "
    "estoy estamos hago voy vamos quiero",
    "it": "io mio mia miei mie mi me noi nostro nostra nostri nostre ci ho abbiamo sono siamo devo vado",
    "pt": "eu meu minha meus minhas me mim nos nosso nossa nossos nossas tenho temos sou somos estou estamos vou vamos "
    "gente",
    "nl": "ik mijn me mij wij we ons onze m'n",
    "sv": "jag min mitt mina mig vi var vart vara oss",
    "da": "jeg min mit mine mig vi vores os",
    "no": "jeg min mitt mine meg vi var vart vare oss",
    "fi": "mina minun minulla minulle minut meidan me meille meilla olen olemme",
    "pl": "ja moj moja moje moi mojego mojej moich moim mnie mi mna my nasz nasza nasze nasi naszego naszej naszych nas nam "
    "mam mamy jestem jestesmy musze",
    "cs": "ja muj moje moji mem meho moji mi me mne my nas nase nasi naseho nam mam mame jsem jsme musim",
    "uk": "я мій моя моє мої мого моєї моїх моєму мені мене мною ми наш наша наше наші нашого нашої наших нам нас",
    "ru": "я мой моя мое мои моего моей моих моему моим мне меня мной мы наш наша наше наши нашего нашей наших нам нас "
    "свой своего своей",
    "tr": "ben benim bana beni bende benden biz bizim bize bizi bizde bizden",
    "hi": "मैं मेरा मेरी मेरे मुझे मुझको मैंने हम हमारा हमारी हमारे हमें हमने अपना अपनी अपने",
    "ar": "انا أنا نحن لي لنا عندي عندنا معي معنا",
    "fa": "من مرا ما مان خودم خودمان",
    "he": "אני שלי לי אותי אנחנו שלנו לנו אותנו",
    "el": "εγω μου με εμενα εμεις μας",
    "ro": "eu meu mea mei mele imi ma mie noi nostru noastra nostri noastre ne am avem sunt suntem",
    "hu": "en enyem nekem engem mi mienk nekunk minket",
    "vi": "toi minh em chung ta tui",
    "id": "saya aku kami kita ku punyaku milikku",
}

# Words of those by which speakers say of a thing behind them that it is theirs.
POSSESSIVE = {
    "en": "my our",
    "de": "mein meine meinen meinem meiner meines unser unsere unseren unserem unserer",
    "fr": "mon ma mes notre nos",
    "es": "mi mis nuestro nuestra nuestros nuestras",
    "it": "mio mia miei mie nostro nostra nostri nostre",
    "pt": "meu minha meus minhas nosso nossa nossos nossas",
    "nl": "mijn m'n ons onze",
    "sv": "min mitt mina var vart vara",
    "da": "min mit mine vores",
    "no": "min mitt mine var vart vare",
    "pl": "moj moja moje moi mojego mojej moich moim nasz nasza nasze nasi naszego naszej naszych",
    "cs": "muj moje moji meho nas nase nasi naseho",
    "uk": "мій моя моє мої мого моєї моїх моєму наш наша наше наші нашого нашої",
    "ru": "мой моя мое мои моего моей моих моему моим наш наша наше наши нашего нашей",
}

# Articles of one known thing ("the kitchen"), alone and joined to a preposition.
ARTICLE = {
    "en": "the",
    "de": "der die das den dem des am im zum zur beim vom ins",
    "fr": "le la les l du des au aux",
    "es": "el la los las del al",
    "it": "il lo la i gli le l del dello della dei degli delle al allo alla ai nel nella dal dalla sul sulla",
    "pt": "o a os as do da dos das no na nos nas ao pelo pela",
    "nl": "de het",
}

# Words for one relative each, apart by commas: who asks about "my father" may have told of "Dad".
KIN = {
    "en": "father dad daddy papa, mother mum mom mummy mommy mama, husband hubby partner boyfriend fiancé spouse, "
    "wife partner girlfriend fiancée spouse, grandfather grandpa granddad, grandmother grandma granny nan",
    "de": "vater papa papi vati, mutter mama mami mutti, mann ehemann partner freund verlobter, "
    "frau ehefrau partnerin freundin verlobte, großvater opa, großmutter oma",
    "fr": "père papa, mère maman, mari époux conjoint compagnon copain fiancé, "
    "femme épouse conjointe compagne copine fiancée",
    "es": "padre papá, madre mamá, marido esposo pareja novio, mujer esposa pareja novia, abuelo yayo, abuela yaya",
    "it": "padre papà babbo, madre mamma, marito compagno fidanzato, moglie compagna fidanzata",
    "pt": "pai papai papá, mãe mamãe mamã, marido esposo companheiro namorado, mulher esposa companheira namorada",
    "nl": "vader papa pa, moeder mama ma, man partner vriend, vrouw partner vriendin, grootvader opa, grootmoeder oma",
}

# Words that look back at what was said, done or decided.
BACK = {
    "en": "again remember remind recall earlier before already ago yesterday last said told mentioned decided agreed "
    "picked chose chosen settled planned promised booked called noted wrote gave",
    "de": "nochmal noch wieder nochmals erinnere erinnerst erinnern vorhin fruher gestern neulich letzte letzten letztes "
    "letztens gesagt erzahlt erwahnt entschieden vereinbart ausgemacht ausgesucht gewahlt besprochen eigentlich "
    "gleich hatten hatte gebucht",
    "fr": "encore deja rappelle rappeler rappelles souviens souvenir hier avant derniere dernier dit raconte mentionne "
    "decide convenu choisi prevu avait avais avions reserve",
    "es": "otra vez recuerda recuerdas recordar recuerdame acuerdas antes ayer ultima ultimo dije dijimos contado conte "
    "mencione decidi decidimos decidido acordamos quedamos elegi elegimos habia habiamos era reserve",
    "it": "ancora ricordi ricorda ricordami ricordare prima ieri ultima ultimo detto raccontato menzionato deciso "
    "decidemmo scelto concordato stabilito avevo avevamo era prenotato",
    "pt": "novo lembra lembras lembrar lembre antes ontem ultima ultimo disse dissemos contei mencionei decidi decidimos "
    "decidido combinamos combinado escolhi escolhemos tinha tinhamos era reservei mesmo",
    "nl": "alweer weer nog herinner herinneren eerder gisteren laatst laatste gezegd verteld genoemd besloten afgesproken "
    "gekozen hadden had geboekt",
    "sv": "igen minns paminn tidigare igar sist sista sagt sa berattade namnde bestamde bestamt valde valt overens hade "
    "bokade",
    "da": "igen husker husk tidligere igar sidst sidste sagt sagde fortalte naevnte besluttede valgte aftalte aftalt havde",
    "no": "igjen husker minn tidligere igar sist siste sagt sa fortalte nevnte bestemte valgte avtalte hadde",
    "fi": "taas uudestaan muistatko muista muistuta aiemmin eilen viimeksi sanoin kerroin mainitsin paatin paatimme "
    "sovimme valitsin valitsimme oli",
    "pl": "znowu jeszcze raz pamietasz przypomnij przypomniec wczesniej wczoraj ostatnio ostatni mowilem mowilam "
    "wspomnialem wspomnialam zdecydowalem zdecydowalismy ustalilismy wybralem wybralam wybralismy bylo byla byl mialem "
    "mialam mielismy mial",
    "cs": "zase znovu jeste pamatujes pripomen drive vcera naposledy rikal rikala rekl rekla zminil zminila rozhodl rozhodli "
    "domluvili vybral vybrala vybrali bylo byla byl mel mela meli",
    "uk": "знову ще раз памятаєш нагадай раніше вчора останній востаннє казав казала говорив говорила згадував згадувала "
    "вирішив вирішила вирішили домовились домовилися обрав обрала обрали було була був",
    "ru": "снова опять раз помнишь напомни напомнить раньше вчера последний говорил говорила сказал сказала упоминал "
    "упоминала решил решила решили договорились выбрал выбрала выбрали было была был там",
    "tr": "tekrar yine hatirla hatirliyor hatirlat daha once dun gecen son soyledim soylemistim demistim anlattim karar "
    "verdim verdik sectim sectik anlastik neydi kimdi miydi neresiydi idi",
    "hi": "फिर दोबारा याद पहले कल पिछली पिछले कहा बताया बताई तय चुना था थी थे",
    "ar": "مجددا ثانية تتذكر تذكر ذكرني سابقا امس أمس آخر قلت اخبرتك أخبرتك ذكرت قررت قررنا اتفقنا اخترت اخترنا كان كانت",
    "fa": "دوباره باز یادت یادم قبلا دیروز آخرین گفتم گفته تصمیم گرفتم گرفتیم انتخاب بود",
    "he": "שוב זוכר זוכרת תזכיר תזכירי קודם אתמול אחרון אמרתי סיפרתי הזכרתי החלטתי החלטנו בחרתי בחרנו היה היתה",
    "el": "παλι ξανα θυμασαι θυμισε πριν χθες τελευταια ειπα ειπαμε αποφασισα αποφασισαμε διαλεξα διαλεξαμε ηταν",
    "ro": "iar din nou amintesti aminteste inainte ieri ultima ultimul spus zis mentionat decis hotarat ales stabilit era",
    "hu": "megint ujra emlekszel emlekeztess korabban tegnap utoljara mondtam emlitettem dontottem dontottunk valasztottam "
    "valasztottunk volt",
    "vi": "lai nho nhac truoc hom qua lan da noi ke quyet dinh chon",
    "id": "lagi ingat ingatkan tadi kemarin sebelumnya terakhir bilang katakan cerita sebutkan putuskan memutuskan sepakat "
    "pilih memilih",
}

# Words of thanks, greetings, agreement and laughter.
SMALL = {
    "en": "thanks thank thx ty cheers ok okay okey k kk cool nice great perfect awesome good fine sure yes yeah yep yup "
    "no nope nah right got understood see sense makes make lol haha hahaha hehe wow hm hmm oh ah aha hi hello hey "
    "morning afternoon evening night bye goodbye welcome lovely excellent wonderful amazing brilliant interesting "
    "funny helpful works worked please go on continue next proceed carry keep going ahead try let's lets much lot "
    "very so really appreciate appreciated never mind nevermind sorry bit more again explain elaborate simpler "
    "shorter longer words that's thats it's its one love like sounds done sweet alright exactly agreed agree true "
    "fair enough absolutely definitely indeed glad happy day weekend later tomorrow today figured sorted legend "
    "lifesaver star np nvm gotcha ha hahah lmao xd yay mate ta wicked ideal worries",
    "de": "danke dankeschon vielen dank ok okay cool super toll prima klasse gut perfekt ja jo nein nee klar alles "
    "genau verstanden verstehe achso aha haha hallo hi hey guten morgen tag abend nacht tschuss bis bald "
    "interessant lustig hilfreich passt stimmt bitte weiter mach machen machs gerne sehr besten wunderbar "
    "grossartig schon lass fahre fort fahren dann das war mir geholfen hast dir gern geschehen na so was echt "
    "egal ihnen tausend herzlichen herzlich bedankt geklappt vergiss jap jup jawohl witzig top mega hammer spitze "
    "moin servus schonen wochenende hihi hehe lol keine sorge",
    "fr": "merci beaucoup mille fois ok d'accord daccord accord cool super genial parfait bien tres bon oui non ouais "
    "compris vois haha mdr bonjour salut bonsoir bonne nuit journee soiree revoir interessant drole utile "
    "continue continuons continuer vas-y vas allons suite plait svp c'est cest exactement top nickel entendu ca "
    "marche depanne depannee aide aidee sauve roule chouette ptdr lol hihi hahaha coucou tant pis laisse tomber "
    "impec impeccable",
    "es": "gracias muchas mil ok vale bien muy perfecto genial estupendo excelente si no claro entendido entiendo ya "
    "veo jaja jajaja hola buenos buenas dias tardes noches adios interesante gracioso util sigue sigamos seguir "
    "continua continuemos adelante favor justo necesitaba eso exacto millon salvado has mucho salvaste ayudado ayudaste "
    "buenisimo jajajaja jeje fenomenal guay dale listo igual olvidalo dejalo amable",
    "it": "grazie mille tante ok va bene perfetto ottimo fantastico benissimo si no certo capito capisco chiaro haha "
    "ahah ciao buongiorno buonasera buonanotte arrivederci interessante divertente utile continua continuiamo "
    "andiamo avanti prosegui favore esatto giusto d'accordo gentile gentilissimo gentilissima bellissima "
    "bellissimo ah ahahah aiutato figurati niente lascia perdere salvato",
    "pt": "obrigado obrigada muito ok ta tudo bem perfeito otimo legal excelente sim nao claro entendi certo haha kkk "
    "rsrs oi ola bom boa dia tarde noite tchau interessante engracado util continua continue continuar vamos "
    "frente favor isso exato beleza valeu obrigadissimo obrigadissima brigado brigada ajudou ajudaste imenso mesmo "
    "salvou salvaste fixe porreiro maximo kkkk ahah esta deixa esquece mal faz demais",
    "nl": "dank dankje dankjewel bedankt je wel ok oke goed prima super mooi top perfect geweldig ja nee zeker begrepen "
    "snap snap het haha hallo hoi hey goedemorgen goedemiddag goedenavond welterusten doei interessant grappig "
    "handig ga verder gaan door alsjeblieft graag helder duidelijk precies klopt fijn leuk dankuwel topper "
    "hartstikke goeie hihi gelukt laat maar zeg geholpen",
    "sv": "tack sa mycket ok okej bra jattebra perfekt toppen fint super ja nej visst absolut forstar haha hej hejsan "
    "god morgon kvall natt dag hejda intressant kul roligt hjalpsamt fortsatt fortsatta vidare garna snalla "
    "precis jo jaha tusen kanon hihi loste hjalpte fattar strunt samma den var rolig",
    "da": "tak mange ok okay godt fint super perfekt fedt ja nej klart forstaet haha hej godmorgen godaften godnat "
    "farvel interessant sjovt fortsaet videre gerne praecis tusind hihi hjalp skont",
    "no": "takk tusen ok okei bra fint supert perfekt flott ja nei klart skjonner haha hei god morgen kveld natt "
    "interessant morsomt fortsett videre gjerne presis mange hihi hjalp greit",
    "fi": "kiitos paljon ok okei hyva hienoa mahtavaa taydellista joo kylla ei selva ymmarran haha hei moi huomenta "
    "iltaa nakemiin mielenkiintoista jatka jatketaan eteenpain kiitti tosi hehe auttoi loistavaa",
    "pl": "dzieki dziekuje bardzo wielkie ok okej dobrze dobra super swietnie idealnie fajnie tak nie jasne rozumiem "
    "haha hej czesc dzien dobry wieczor dobranoc pa interesujace ciekawe zabawne przydatne kontynuuj kontynuujmy "
    "dalej idzmy idziemy prosze dokladnie zgoda spoko no slicznie serdecznie pomoglo pomogles pomoglas chodzilo o "
    "to hihi hehe swietne niewazne dobre niezle",
    "cs": "diky dekuji dekuju moc ok dobre dobra super skvele perfektni fajn ano jo ne jasne chapu rozumim haha ahoj "
    "cau dobry den rano vecer noc nashledanou zajimave vtipne pokracuj pokracujme dal dale prosim presne tak dik "
    "pomohlo pomohl pomohla hehe hihi nevadi parada",
    "uk": "дякую спасибі дуже велике ок окей добре супер чудово ідеально класно так ні ясно зрозуміло розумію хаха "
    "привіт добрий день ранок вечір добраніч бувай цікаво смішно корисно продовжуй продовжуймо далі давай прошу "
    "точно гаразд щиро виручили виручив виручила допомогло допомогли клас ахах ахаха хах",
    "ru": "спасибо большое благодарю ок окей хорошо супер отлично здорово класс прекрасно идеально да нет ага ясно "
    "понятно понял поняла хаха привет здравствуй здравствуйте доброе добрый утро день вечер ночи пока интересно "
    "смешно полезно продолжай продолжим продолжаем дальше далее давай пожалуйста точно то что надо ладно очень "
    "огромное помогли помог помогла помогло выручили выручил выручила хах ахаха хахаха неважно забей",
    "tr": "tesekkurler tesekkur ederim sagol sag ol cok tamam tamamdir olur super harika mukemmel guzel iyi evet hayir "
    "tabii anladim haha merhaba selam gunaydin iyi aksamlar geceler gunler hoscakal ilginc komik faydali devam "
    "edelim et edin lutfen aynen peki eyvallah sagolun supersin oldu iyiymis hahaha yaradi ise bosver guldum",
    "hi": "धन्यवाद शुक्रिया बहुत ठीक है अच्छा बढ़िया सही शानदार हाँ हां नहीं समझ गया गई हाहा नमस्ते नमस्कार सुप्रभात "
    "शुभ रात्रि अलविदा दिलचस्प मज़ेदार आगे बढ़ो बढ़ते हैं जारी रखो रखें कृपया ओके ok हाहाहा मज़ा मजा आया आ मिली "
    "कमाल वाह",
    "ar": "شكرا شكرًا جزيلا جزيلًا ممتاز تمام حسنا حسنًا جيد رائع جميل نعم لا أجل فهمت مفهوم ههه هههه مرحبا أهلا اهلا "
    "صباح مساء الخير النور تصبح على خير وداعا مع السلامة مثير للاهتمام مضحك مفيد أكمل اكمل لنكمل تابع استمر من "
    "فضلك هذا بالضبط طيب اوكي أوكي أفدتني افدتني كثيرا كثيرًا ماشي ههههه هههههه حلو حلوة العافية يعطيك",
    "fa": "ممنون مرسی متشکرم سپاس خیلی تشکر باشه خوب خوبه عالی عالیه بله آره نه فهمیدم متوجه شدم هاها سلام صبح بخیر شب "
    "خداحافظ جالب بامزه مفید ادامه بده بدهیم بدیم لطفا دقیقا درسته اوکی هاهاها بود دمت گرم",
    "he": "תודה רבה אוקיי בסדר טוב מעולה מצוין יופי מושלם כן לא ברור הבנתי חחח היי שלום בוקר ערב לילה ביי מעניין מצחיק "
    "המשך נמשיך הלאה בבקשה בדיוק סבבה מאוד חחחח",
    "el": "ευχαριστω πολυ ενταξει οκ καλα τελεια ωραια υπεροχα ναι οχι βεβαια καταλαβα χαχα γεια καλημερα καλησπερα "
    "καληνυχτα ενδιαφερον συνεχισε παμε παρακαλω ακριβως παρα χαχαχα",
    "ro": "multumesc mersi mult ok bine perfect super grozav excelent da nu sigur inteles am haha salut buna ziua "
    "dimineata seara noapte pa interesant amuzant util continua continuam mai departe hai rog exact mii gata "
    "ajutat",
    "hu": "koszonom koszi szepen nagyon ok oke rendben jo szuper tokeletes nagyszeru igen nem persze ertem haha szia "
    "hello jo reggelt napot estet ejszakat viszlat erdekes vicces hasznos folytasd folytassuk tovabb kerlek "
    "pontosan segitett",
    "vi": "cam on cảm ơn nhieu ok duoc tot tuyet voi hoan hao vang da khong hieu roi haha xin chao chao buoi sang toi "
    "ngu ngon tam biet thu vi vui huu ich tiep tuc di lam on chinh xac qua a nhe nha ban hihi hay",
    "id": "terima kasih makasih banyak ok oke baik bagus sip mantap sempurna keren ya iya tidak nggak jelas mengerti "
    "paham haha hai halo selamat pagi siang sore malam dadah menarik lucu membantu lanjut lanjutkan teruskan ayo "
    "mari tolong tepat betul sangat deh siap wkwk wkwkwk wkwkwkwk",
}

# Words of wishes that are to hold from now on.
WISH = {
    "en": "always never don't dont whenever please only prefer rather stick avoid without instead every each keep use call "
    "from now on anything nothing must no",
    "de": "immer nie niemals bitte nur lieber statt ohne kein keine keinen vermeide bevorzuge stets ab jetzt jedes wenn du",
    "fr": "toujours jamais ne s'il plait seulement plutot prefere evite sans chaque desormais n pas",
    "es": "siempre nunca jamas no favor solo prefiero mejor evita sin cada partir cuando",
    "it": "sempre mai non favore solo preferisco piuttosto evita senza ogni d'ora quando",
    "pt": "sempre nunca jamais nao favor so prefiro melhor evite sem cada partir quando",
    "nl": "altijd nooit niet alsjeblieft graag alleen liever vermijd zonder elke voortaan geen",
    "sv": "alltid aldrig inte snalla bara hellre foredrar undvik utan varje hadanefter inga ingen",
    "da": "altid aldrig ikke kun hellere foretraekker undga uden hver fremover ingen",
    "no": "alltid aldri ikke bare heller foretrekker unnga uten hver ingen",
    "fi": "aina koskaan ala alkaa vain mieluummin valta ilman joka",
    "pl": "zawsze nigdy nie prosze tylko wole raczej unikaj bez kazdy kazde odtad",
    "cs": "vzdy vzdycky nikdy ne prosim jen radsi raději vyhni bez kazdy odted",
    "uk": "завжди ніколи не прошу тільки краще уникай без кожен відтепер лише",
    "ru": "всегда никогда не пожалуйста только лучше избегай без каждый отныне",
    "tr": "her zaman asla hicbir lutfen sadece tercih kacin olmadan bundan sonra",
    "hi": "हमेशा कभी मत कृपया केवल सिर्फ पसंद बिना हर अब से",
    "ar": "دائما دائمًا أبدا أبدًا لا فضلك فقط أفضل تجنب بدون كل الآن",
    "fa": "همیشه هرگز هیچوقت لطفا فقط ترجیح بدون هر نکن",
    "he": "תמיד לעולם אף פעם אל בבקשה רק מעדיף מעדיפה בלי כל",
    "el": "παντα ποτε μην παρακαλω μονο προτιμω χωρις καθε",
    "ro": "mereu intotdeauna niciodata nu rog doar prefer evita fara fiecare",
    "hu": "mindig soha ne kerlek csak inkabb keruld nelkul minden",
    "vi": "luon bao gio dung chi thich tranh moi",
    "id": "selalu jangan pernah tolong hanya lebih hindari tanpa setiap mulai sekarang",
}

# Words of questions after one particular thing: which, when, where, who, and what it is called.
PARTICULAR = {
    "en": "which when where who whose whom name named called number far long late early left kind sort",
    "de": "welche welcher welches welchen welchem wann wo wer wen wem wohin woher name heisst hiess hiessen nummer lange "
    "wieviel uhr",
    "fr": "quel quelle quels quelles quand ou qui nom appelle appelait numero combien heure",
    "es": "cual cuales cuando donde quien quienes nombre llama llamaba llamaban numero cuanto cuanta hora adonde",
    "it": "quale quali quando dove chi nome chiama chiamava numero quanto quanta ora",
    "pt": "qual quais quando onde quem nome chama chamava numero quanto quanta hora horas",
    "nl": "welke welk wanneer waar wie naam heet heette nummer hoelang hoeveel laat",
    "sv": "vilken vilket vilka nar var vem vems namn heter hette nummer lange mycket tid",
    "da": "hvilken hvilket hvilke hvornar hvor hvem hvis navn hedder hed nummer laenge",
    "no": "hvilken hvilket hvilke nar hvor hvem navn heter het nummer lenge",
    "fi": "mika mitka milloin missa mihin kuka kenen nimi numero kauanko montako",
    "pl": "ktory ktora ktore ktorym ktorej kiedy gdzie kto kim kogo imie nazwa nazywa nazywal nazywala numer ile godzinie "
    "dokad",
    "cs": "ktery ktera ktere kterem kdy kde kdo koho komu jmeno jmenuje jmenoval jmenovala cislo kolik kam",
    "uk": "який яка яке які якому якій коли де хто кого імя назва називається називався номер скільки куди о котрій",
    "ru": "какой какая какое какие каком какую когда где кто кого кому имя название зовут звали называется назывался номер "
    "сколько куда во",
    "tr": "hangi hangisi hangisini ne nezaman zaman nerede neresi nereye kim kimin kimdi adi ismi numara numarasi kac saat",
    "hi": "कौन कौनसा कौनसी किस किसने किसे कब कहाँ कहां कितने कितनी कितना नाम नंबर बजे",
    "ar": "أي اي متى أين اين من اسم اسمه اسمها رقم كم ساعة الساعة",
    "fa": "کدام کدوم کی کجا چه اسم نام شماره چند ساعت",
    "he": "איזה איזו אילו מתי איפה מי שם מספר כמה שעה",
    "el": "ποιος ποια ποιο ποιον ποτε που ονομα λεγεται λεγοταν αριθμος ποσο ωρα",
    "ro": "care cand unde cine cui nume cheama numar cat cata ora",
    "hu": "melyik mikor hol ki kinek nev neve hivjak szam hany mennyi",
    "vi": "nao khi dau ai ten so may gio bao",
    "id": "mana kapan dimana siapa nama namanya nomor berapa jam",
}

# Words of what anybody could ask: one of a kind, what something means, how one does it, and what is to be made.
GENERAL = {
    "en": "help summarise rewrite rephrase shorten phrase draft plan compare design turn reverse implement calculate count improve fix how do does should can could would a an best good difference mean means example examples explain write give tell make list translate summarize "
    "recommend suggest does work works difference people usually typical you your one joke poem story quick simple",
    "de": "hilf fasse kurze formuliere entwirf plane vergleiche berechne nenn verbessere wie sollte ein eine einen einem einer beste besten gut unterschied bedeutet beispiel erklare erklar erklaere schreib schreibe "
    "gib nenne sag sage mach liste ubersetze fasse empfiehl funktioniert man du dein witz gedicht geschichte heisst auf",
    "fr": "aide aidez resume reformule raccourcis redige compare calcule ameliore comment un une des meilleur meilleure difference signifie exemple explique expliquer ecris donne dis fais liste traduis "
    "resume recommande fonctionne on tu ton blague poeme histoire comment dit-on dit",
    "es": "ayudame ayuda redacta acorta reformula compara calcula mejora como un una unos unas mejor diferencia significa ejemplo explica explicame escribe escribeme da dame di dime haz lista "
    "traduce resume recomienda funciona se tu chiste poema historia cuento capital",
    "it": "aiutami aiuta riassumi riformula accorcia confronta calcola migliora come un una uno miglior migliore differenza significa esempio spiega spiegami scrivi dammi dimmi fai elenca traduci "
    "riassumi consiglia funziona si tu barzelletta poesia storia capitale",
    "pt": "ajuda ajude resuma reformula encurta compara calcula melhora como um uma uns umas melhor diferenca significa exemplo explica explique escreve escreva da de diz diga faz faca lista "
    "traduz traduza resume recomenda funciona se voce piada poema historia capital",
    "nl": "help herschrijf vat verkort vergelijk bereken hoe een beste goed verschil betekent voorbeeld leg uit schrijf geef noem vertel maak lijst vertaal vat raad werkt men je "
    "jij mop gedicht verhaal hoofdstad",
    "sv": "hjalp skriv forkorta jamfor rakna hur en ett basta bra skillnaden skillnad betyder exempel forklara skriv ge beratta gor lista oversatt sammanfatta "
    "fungerar man du skamt dikt saga huvudstaden",
    "da": "hvordan en et bedste god forskellen betyder eksempel forklar skriv giv fortael lav liste oversaet fungerer man du vittighed "
    "digt historie hovedstaden",
    "no": "hvordan en et beste god forskjellen betyr eksempel forklar skriv gi fortell lag liste oversett fungerer man du vits dikt "
    "historie hovedstaden",
    "fi": "miten kuinka paras hyva ero tarkoittaa esimerkki selita kirjoita anna kerro tee luettele kaanna toimii vitsi runo tarina "
    "paakaupunki",
    "pl": "pomoz streszcz skroc przeredaguj porownaj oblicz jak najlepszy najlepsza najlepsze roznica znaczy oznacza przyklad wyjasnij wytlumacz napisz podaj daj powiedz zrob "
    "lista przetlumacz stresc polec dziala sie ty zart wiersz historia stolica jaka",
    "cs": "pomoz shrn zkrat prepis porovnej spocitej jak nejlepsi rozdil znamena priklad vysvetli napis dej rekni udelej seznam preloz shrn doporuc funguje se ty vtip basen "
    "pribeh hlavni mesto",
    "uk": "допоможи скороти перепиши порівняй порахуй як найкращий найкраща найкраще різниця означає приклад поясни напиши дай назви скажи зроби список переклади порадь працює "
    "ти жарт вірш історія столиця",
    "ru": "помоги помогите сократи перепиши сравни посчитай придумай составь как лучший лучшая лучшее разница значит означает пример объясни напиши дай назови скажи сделай список переведи посоветуй "
    "работает ты шутку анекдот стихотворение стих рассказ столица",
    "tr": "yardim kisalt duzenle karsilastir hesapla nasil bir en iyi fark farki demek anlama gelir ornek acikla yaz ver soyle yap liste cevir ozetle oner calisir sen saka "
    "siir hikaye baskenti",
    "hi": "मदद सुझाव सुझाओ तुलना कैसे एक सबसे अच्छा अंतर मतलब अर्थ उदाहरण समझाओ समझाइए लिखो लिखिए दो दीजिए बताओ बताइए बनाओ सूची अनुवाद तुम आप चुटकुला कविता कहानी "
    "राजधानी होता होती",
    "ar": "ساعدني اختصر قارن احسب كيف افضل أفضل الفرق يعني معنى مثال اشرح اكتب أعط اعط قل اذكر ترجم لخص اقترح تعمل يعمل أنت نكتة قصيدة قصة عاصمة",
    "fa": "کمک کوتاه مقایسه حساب چگونه چطور یک بهترین تفاوت فرق یعنی معنی مثال توضیح بنویس بده بگو بساز فهرست ترجمه خلاصه پیشنهاد کار تو جوک شعر داستان پایتخت",
    "he": "איך הכי טוב ההבדל אומר דוגמה הסבר תסביר כתוב תכתוב תן אמור תגיד הכן רשימה תרגם סכם המלץ עובד אתה בדיחה שיר סיפור בירת",
    "el": "πως ενας μια ενα καλυτερος διαφορα σημαινει παραδειγμα εξηγησε γραψε δωσε πες κανε λιστα μεταφρασε ανεκδοτο ποιημα ιστορια "
    "πρωτευουσα",
    "ro": "cum un o cel mai bun diferenta inseamna exemplu explica scrie da spune fa lista tradu rezuma recomanda functioneaza se "
    "tu gluma poezie poveste capitala",
    "hu": "hogyan egy legjobb kulonbseg jelent pelda magyarazd irj adj mondj mond keszits lista forditsd mukodik te vicc vers "
    "tortenet fovarosa",
    "vi": "giup rut gon so sanh tinh mot tot nhat khac nghia la vi du giai thich viet cho ke lam danh sach dich tom tat goi y hoat dong ban truyen tho "
    "chuyen cuoi thu do",
    "id": "bantu bantulah singkatkan bandingkan hitung bagaimana cara sebuah terbaik baik perbedaan beda artinya arti contoh jelaskan tulis tuliskan beri berikan sebutkan buat buatkan "
    "daftar terjemahkan ringkas sarankan bekerja kamu lelucon puisi cerita ibu kota ibukota",
}

# Words that ask to go on with what was being done.
GO_ON = {
    "en": "go on continue continuing next proceed carry keep going ahead let us lets resume",
    "de": "weiter weitermachen mach machen fahre fahren fort fortfahren nachste nachster nachstes",
    "fr": "continue continuons continuer suite allons poursuis poursuivons suivant avancons",
    "es": "sigue sigamos seguir continua continuemos continuar adelante siguiente prosigamos",
    "it": "continua continuiamo continuare avanti proseguiamo prosegui andiamo prossimo",
    "pt": "continua continue continuar continuemos frente seguir sigamos proximo adiante",
    "nl": "verder ga gaan doorgaan door volgende vervolg",
    "sv": "fortsatt fortsatta vidare nasta",
    "da": "fortsaet fortsaette videre naeste",
    "no": "fortsett fortsette videre neste",
    "fi": "jatka jatketaan jatkakaa eteenpain seuraava",
    "pl": "kontynuuj kontynuujmy kontynuowac dalej idzmy idziemy nastepny nastepne",
    "cs": "pokracuj pokracujme pokracovat dal dale dalsi",
    "uk": "продовжуй продовжуймо продовжимо продовжити далі наступне",
    "ru": "продолжай продолжим продолжаем продолжить продолжайте дальше далее следующее",
    "tr": "devam edelim et edin surdur sonraki",
    "hi": "आगे बढ़ो बढ़ते बढ़ें जारी रखो रखें अगला",
    "ar": "أكمل اكمل لنكمل نكمل تابع لنتابع نتابع استمر لنستمر التالي",
    "fa": "ادامه بده بدهیم بدیم بعدی",
    "he": "המשך תמשיך נמשיך הלאה הבא",
    "el": "συνεχισε συνεχιζουμε συνεχισουμε παμε επομενο",
    "ro": "continua continuam continuati mai departe urmatorul",
    "hu": "folytasd folytassuk tovabb kovetkezo",
    "vi": "tiep tuc",
    "id": "lanjut lanjutkan teruskan berikutnya",
}

# Written without spaces: an entry stands anywhere. `FUNCTION` is not needed there, the script tells the language.
UNSPACED = {
    "own": {
        "zh": "我 咱",
        "ja": "私 わたし 僕 ぼく 俺 うち 我が",
        "ko": "나 내 제 저 우리 저희",
        "th": "ผม ฉัน ดิฉัน เรา หนู",
    },
    "back": {
        "zh": "再 还记得 记得 提醒 之前 上次 刚才 昨天 说过 提过 来着 决定 选了 定了 约好",
        "ja": "っけ もう一度 覚えて 思い出 前に さっき 昨日 言った 話した 決めた 選んだ 約束 だった でした",
        "ko": "다시 기억 아까 전에 어제 지난 말했 했지 였지 었지 았지 더라 라고 정했 골랐 결정",
        "th": "อีกครั้ง จำได้ เตือน ก่อนหน้า เมื่อวาน ครั้งที่แล้ว บอก เคย ตัดสินใจ เลือก",
    },
    "small": {
        "zh": "谢谢 多谢 感谢 太好了 好的 好吧 好 行 嗯 哦 哈哈 明白 了解 知道了 懂了 你好 您好 早上 下午 晚上 早安 晚安 再见 拜拜 有意思 "
        "不错 很 非常 太 棒 厉害 完美 继续 接着 我们 吧 了 呢 啊 呀 请 没问题 可以 对 是的 没关系 算了 帮 大忙 真 的 您 你 辛苦 没事 不用 笑死 哈",
        "ja": "ありがとう ございます ございました どうも 助かりました 助かった はい いいえ うん ええ わかりました わかった 分かりました 了解 です オッケー "
        "おはよう こんにちは こんばんは おやすみ さようなら なるほど 面白い おもしろい いい よい 良い 最高 完璧 すごい 素晴らしい 続けて 続けましょう "
        "続き ください お願いします ましょう ね よ とても 本当に 大丈夫 笑 それで すごく わかりやすい わかりやすかった 笑った "
        "気にしないで 感謝 します",
        "ko": "고마워 고맙 감사 합니다 해요 정말 도움 됐어 되었어 네 예 응 아니 좋아 좋아요 좋네 알겠 어 어요 습니다 그래 오케이 ㅋㅋ ㅎㅎ 하하 안녕 "
        "하세요 굿모닝 잘자 재밌 재미있 완벽 최고 대박 멋지 계속 하자 해줘 해주세요 이어서 다음 부탁 이 요 네요 이해 했어 했어요 괜찮아 아주 진짜 많이 너무 "
        "큰 됐어요 넵 덕분에 다행 웃겨 ㅋ",
        "th": "ขอบคุณ มาก โอเค ตกลง ดี เยี่ยม ใช่ ไม่ เข้าใจ แล้ว 555 สวัสดี ครับ ค่ะ คะ ลาก่อน น่าสนใจ ต่อ เลย ไป กัน",
    },
    "wish": {
        "zh": "总是 永远 一律 每次 以后 不要 别 不用 请 只 尽量 必须 喜欢 统一",
        "ja": "いつも 必ず 絶対 決して 今後 これから 毎回 しないで 使わないで やめて だけ にして てください 好き 避けて",
        "ko": "항상 언제나 절대 앞으로 매번 하지 마 말고 말아 만 으로 해 주세요 해줘 좋아 피해",
        "th": "เสมอ ตลอด อย่า ห้าม ทุกครั้ง ต่อไป แค่ เท่านั้น ชอบ",
    },
    "particular": {
        "zh": "哪 谁 什么时候 几 叫什么 名字 多少 什么",
        "ja": "どこ いつ 誰 だれ どの どれ どっち 何時 何番 何という 名前 いくら 何",
        "ko": "어디 언제 누구 누가 어느 어떤 몇 이름 뭐였 무슨 얼마",
        "th": "ไหน เมื่อไหร่ เมื่อไร ใคร ชื่อ เบอร์ กี่ เท่าไหร่",
    },
    "general": {
        "zh": "解释 写 翻译 帮我 润色 改写 推荐 介绍 给我 讲 一个 一首 一段 最好 区别 意思 例子 首都 怎么 为什么 你",
        "ja": "説明 書いて 手伝って 要約 直して 翻訳 訳して おすすめ 教えて 一番 違い 意味 例 首都 とは どうして なぜ あなた 作って 冗談 ジョーク",
        "ko": "설명 써 도와 요약 다듬어 번역 추천 알려 가장 차이 뜻 의미 예 수도 왜 어떻게 너 농담 시를 만들어",
        "th": "อธิบาย เขียน แปล แนะนำ บอก ดีที่สุด แตกต่าง ความหมาย ตัวอย่าง เมืองหลวง ทำไม อย่างไร คุณ",
    },
    "go_on": {
        "zh": "继续 接着 下一步 往下",
        "ja": "続け 続き 次 進めて 進みましょう",
        "ko": "계속 이어서 다음 진행",
        "th": "ต่อ ดำเนินการ ถัดไป",
    },
}
